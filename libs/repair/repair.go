package repair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
)

// Service describes what a service repairs.
type Service struct {
	Name string
	// Copies is the query of WriteCopies; "" if the service holds no copies.
	Copies string
	// Kinds are the kinds of objects that the service owns and others copy.
	Kinds []Kind
	// Fixes are statements about the service's own rows that depend on the copies.
	Fixes []Fix
	// Forget removes the copy of an object that its owner has lost, by the prefix of its id.
	Forget map[string]func(ctx context.Context, tx pg.Tx, id string) error
	// Counters are the tables (tenant_id, livemode, next) of the next human-readable numbers, by the kind of object.
	Counters map[string]string
}

// Kind is a kind of objects. A copy of version 0 has an unknown version.
type Kind struct {
	Prefix string // of their ids
	// Own selects tenant_id, livemode, key (text), version, changed_at, logged (boolean: each version has a public event), holders
	// (text[]: the services that must hold a copy) and events (text[]: the types that the log of events must contain). @since is the time
	// since which changes may be missing elsewhere, and @first the first uuid of that time.
	Own string
	// Publish publishes the object with at least this version, as events of these types, or as an update if there are none. A version
	// above the row's replaces it. It does nothing if the object no longer exists.
	Publish func(ctx context.Context, tx pg.Tx, key string, version int64, events []string) error
}

// Fix is a statement about the service's own rows. It reads the temporary table repair_copies, which has the columns holder, prefix,
// tenant_id, livemode, key, version, event and number.
type Fix struct {
	What string // what a row of the result is, in the plural
	SQL  string // returns one text per row that it changed
	// Open selects one text per row for which the fix is not complete; "": the fix is complete at once.
	Open string
	// Shown marks a query whose rows need a person. They are shown, and are no difference.
	Shown bool
}

// Lost is an object that its owner has lost. It is one line of JSON.
type Lost struct {
	Tenant   ids.Tenant `json:"tenant"`
	Livemode bool       `json:"livemode"`
	ID       string     `json:"id"`
	Version  int64      `json:"version"` // the highest that a copy has
	Holders  []string   `json:"holders"` // the services that hold a copy; none: only the log of events names it
	Number   string     `json:"number,omitempty"`
}

// Run is one run of the command.
type Run struct {
	URL      string    // connects as the owner of the database
	Since    time.Time // earliest change that may be missing elsewhere
	Check    bool      // change nothing
	In       io.Reader // lines of Copy
	Out      io.Writer // lines of Lost
	Progress io.Writer
}

// ErrDiffers reports that a check found differences.
var ErrDiffers = errors.New("the databases differ: run `repair` without --check")

const (
	batch    = 500    // objects that one query plans
	progress = 10_000 // objects between two lines of progress
	examples = 10     // rows that a check shows of each kind
)

// Do compares and, unless r.Check is set, repairs. Each object has its own transaction, so that the command can be stopped and run
// again at any time. In memory it holds one batch of keys.
func (s Service) Do(ctx context.Context, r Run) error {
	conn, err := connect(ctx, r.URL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	db, err := pg.Open(ctx, r.URL, pg.Options{MaxConns: 1, Background: true})
	if err != nil {
		return err
	}
	defer db.Close()
	n, err := load(ctx, conn, r.In)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.Progress, "%s: %d copies read\n", s.Name, n)
	differ := 0
	for _, f := range s.Fixes {
		n, err := r.fix(ctx, conn, s.Name, f)
		if err != nil {
			return err
		}
		differ += n
	}
	for _, k := range s.Kinds {
		n, err := r.kind(ctx, conn, db, s.Name, k)
		if err != nil {
			return err
		}
		differ += n
	}
	n2, err := r.lost(ctx, conn, s)
	if err != nil {
		return err
	}
	if differ += n2; differ > 0 && r.Check {
		return fmt.Errorf("%s: %d: %w", s.Name, differ, ErrDiffers)
	}
	return nil
}

// fix runs a statement. A check rolls it back.
func (r Run) fix(ctx context.Context, conn *pgx.Conn, service string, f Fix) (int, error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return 0, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	sql := f.SQL
	if r.Check && f.Open != "" {
		sql = f.Open
	}
	rows, err := tx.Query(ctx, sql)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", f.What, err)
	}
	n, text := 0, ""
	_, err = pgx.ForEachRow(rows, []any{&text}, func() error {
		if n++; n <= examples {
			fmt.Fprintf(r.Progress, "%s: %s: %s\n", service, f.What, text)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", f.What, err)
	}
	if n > 0 {
		fmt.Fprintf(r.Progress, "%s: %d %s\n", service, n, f.What)
	}
	if f.Shown {
		return 0, nil
	}
	if r.Check {
		return n, nil
	}
	return n, tx.Commit(ctx)
}

// plan selects the objects of a kind that must be published again: version is above the row's if a copy is newer.
const plan = `
	create temporary table repair_plan as
	with own as (%s),
	held as (
		select tenant_id, livemode, key, max(version) as top, min(nullif(version, 0)) as low, array_agg(holder) as holders from (
			select holder, tenant_id, livemode, key, max(version) as version from repair_copies
			where prefix = @prefix and event = '' group by 1, 2, 3, 4) newest
		group by 1, 2, 3),
	logged as (
		select tenant_id, livemode, key, max(version) as top, array_agg(distinct event) as events from repair_copies
		where prefix = @prefix and event <> '' group by 1, 2, 3)
	select row_number() over (order by o.tenant_id, o.livemode, o.key) as n, o.tenant_id, o.livemode, o.key, o.version as was,
		case when greatest(h.top, l.top) > o.version then greatest(h.top, l.top) + 1 else o.version end as version,
		array(select unnest(o.events) except select unnest(l.events)) as events
	from own o
	left join held h on (h.tenant_id, h.livemode, h.key) = (o.tenant_id, o.livemode, o.key)
	left join logged l on (l.tenant_id, l.livemode, l.key) = (o.tenant_id, o.livemode, o.key)
	where greatest(h.top, l.top) > o.version or h.low < o.version
		or o.changed_at >= @since and not o.holders <@ coalesce(h.holders, '{}')
		or not o.events <@ coalesce(l.events, '{}')
		or o.logged and o.changed_at >= @since and coalesce(l.top, 0) < o.version`

// planned is an object that must be published again.
type planned struct {
	N        int64
	TenantID [16]byte
	Livemode bool
	Key      string
	Was      int64
	Version  int64
	Events   []string
}

func (r Run) kind(ctx context.Context, conn *pgx.Conn, db *pg.DB, service string, k Kind) (int, error) {
	if _, err := conn.Exec(ctx, `drop table if exists repair_plan`); err != nil {
		return 0, fmt.Errorf("%s: %w", k.Prefix, err)
	}
	first := ids.First[ids.EventPrefix](r.Since).UUID()
	_, err := conn.Exec(ctx, fmt.Sprintf(plan, k.Own), pgx.NamedArgs{"prefix": k.Prefix, "since": r.Since, "first": first})
	if err != nil {
		return 0, fmt.Errorf("compare %s: %w", k.Prefix, err)
	}
	done := 0
	for after := int64(0); ; {
		rows, err := conn.Query(ctx, `select n, tenant_id, livemode, key, was, version, events from repair_plan where n > $1 order by n limit $2`, after, batch)
		if err != nil {
			return done, fmt.Errorf("plan of %s: %w", k.Prefix, err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowToStructByName[planned])
		if err != nil || len(list) == 0 {
			if done > 0 {
				fmt.Fprintf(r.Progress, "%s: %d %s %s\n", service, done, k.Prefix, r.verb("published again"))
			}
			return done, err
		}
		for _, p := range list {
			done++
			if err := r.again(ctx, db, service, k, p, done); err != nil {
				return done, err
			}
		}
		after = list[len(list)-1].N
	}
}

// again publishes the n-th object of a kind again, or shows it if the run only checks.
func (r Run) again(ctx context.Context, db *pg.DB, service string, k Kind, p planned, n int) error {
	if n <= examples && r.Check {
		fmt.Fprintf(r.Progress, "%s: %s version %d -> %d %v\n", service, ids.Public(k.Prefix, p.Key), p.Was, p.Version, p.Events)
	}
	if n%progress == 0 {
		fmt.Fprintf(r.Progress, "%s: %d %s\n", service, n, k.Prefix)
	}
	if r.Check {
		return nil
	}
	return publish(ctx, db, service, k, p)
}

// verb returns what a run does, or what it would do if it only checks.
func (r Run) verb(done string) string {
	if r.Check {
		return "to be " + done
	}
	return done
}

func publish(ctx context.Context, db *pg.DB, service string, k Kind, p planned) error {
	from := caller.Service(service, ids.FromUUID[ids.TenantPrefix](p.TenantID), caller.ModeOf(p.Livemode))
	err := db.Tx(caller.With(ctx, from), func(ctx context.Context, tx pg.Tx) error { return k.Publish(ctx, tx, p.Key, p.Version, p.Events) })
	if err != nil {
		return fmt.Errorf("publish %s: %w", ids.Public(k.Prefix, p.Key), err)
	}
	return nil
}

// lost writes the objects of which there are copies but no row. It returns the number of those that a service other than the log of
// events holds.
func (r Run) lost(ctx context.Context, conn *pgx.Conn, s Service) (int, error) {
	held, total := 0, 0
	out := json.NewEncoder(r.Out)
	for _, k := range s.Kinds {
		rows, err := conn.Query(ctx, fmt.Sprintf(`
			with own as (%s)
			select c.tenant_id, c.livemode, c.key, max(c.version), array_remove(array_agg(distinct case when c.event = '' then c.holder end), null), max(c.number)
			from repair_copies c where c.prefix = @prefix
				and not exists (select from own o where (o.tenant_id, o.livemode, o.key) = (c.tenant_id, c.livemode, c.key))
			group by 1, 2, 3 order by 1, 2, 3`, k.Own), pgx.NamedArgs{"prefix": k.Prefix, "since": r.Since, "first": ids.First[ids.EventPrefix](r.Since).UUID()})
		if err != nil {
			return held, fmt.Errorf("lost %s: %w", k.Prefix, err)
		}
		var l Lost
		var tenant [16]byte
		var key string
		_, err = pgx.ForEachRow(rows, []any{&tenant, &l.Livemode, &key, &l.Version, &l.Holders, &l.Number}, func() error {
			l.Tenant, l.ID = ids.FromUUID[ids.TenantPrefix](tenant), ids.Public(k.Prefix, key)
			if total++; len(l.Holders) > 0 {
				held++
			}
			return out.Encode(l)
		})
		if err != nil {
			return held, fmt.Errorf("lost %s: %w", k.Prefix, err)
		}
	}
	if total > 0 {
		fmt.Fprintf(r.Progress, "%s: %d objects are lost; other services hold a copy of %d of them\n", s.Name, total, held)
	}
	return held, nil
}

// ForgetLost removes the service's copies of the lost objects in r.In, lines of Lost. A copy that is already gone is skipped.
func (s Service) ForgetLost(ctx context.Context, r Run) error {
	db, err := pg.Open(ctx, r.URL, pg.Options{MaxConns: 1, Background: true})
	if err != nil {
		return err
	}
	defer db.Close()
	n, in := 0, json.NewDecoder(r.In)
	for {
		var l Lost
		if err := in.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("object %d is not one that `repair` wrote: %w", n+1, err)
		}
		prefix, _ := ids.Stored(l.ID)
		forget := s.Forget[prefix]
		if forget == nil {
			continue
		}
		from := caller.Service(s.Name, l.Tenant, caller.ModeOf(l.Livemode))
		err := db.Tx(caller.With(ctx, from), func(ctx context.Context, tx pg.Tx) error { return forget(ctx, tx, l.ID) })
		if err != nil {
			return fmt.Errorf("forget %s: %w", l.ID, err)
		}
		n++
	}
	fmt.Fprintf(r.Progress, "%s: %d lost objects processed\n", s.Name, n)
	return nil
}
