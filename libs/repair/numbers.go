package repair

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
)

// MaxSkip is the highest number of numbers that SkipNumbers skips.
const MaxSkip = 1_000_000

// Skipped is a range of numbers that are never assigned. It is one line of JSON.
type Skipped struct {
	Kind     string     `json:"kind"`
	Tenant   ids.Tenant `json:"tenant"`
	Livemode bool       `json:"livemode"`
	First    int64      `json:"first"`
	Last     int64      `json:"last"`
}

// SkipNumbers skips the next n numbers of the kinds, or of all kinds if there are none, for each tenant and mode that has a counter or
// an object of r's service. It is for numbers that were assigned after the moment of a restore and that no database knows. It writes
// lines of Skipped to r.Out when all counters are raised, and raises none if it fails. The service must be stopped, because it holds
// reserved numbers in memory. A repeated call skips n more.
func (s Service) SkipNumbers(ctx context.Context, r Run, n int, kinds []string) error {
	if n < 1 || n > MaxSkip {
		return fmt.Errorf("--skip must be from 1 to %d, not %d", MaxSkip, n)
	}
	known := slices.Sorted(maps.Keys(s.Counters))
	if len(kinds) == 0 {
		kinds = known
	}
	for _, kind := range kinds {
		if s.Counters[kind] == "" {
			return fmt.Errorf("%s has no numbers of %q: choose from %s", s.Name, kind, strings.Join(known, ", "))
		}
	}
	conn, err := connect(ctx, r.URL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var skipped []Skipped
	for _, kind := range kinds {
		list, err := s.skip(ctx, tx, kind, n)
		if err != nil {
			return fmt.Errorf("skip numbers of %s: %w", kind, err)
		}
		skipped = append(skipped, list...)
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	out := json.NewEncoder(r.Out)
	for _, one := range skipped {
		if err := out.Encode(one); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	fmt.Fprintf(r.Progress, "%s: %d counters raised by %d\n", s.Name, len(skipped), n)
	return nil
}

// skip raises the counters of one kind. Tenants without a counter get one, because their first number may have been assigned.
func (s Service) skip(ctx context.Context, tx pgx.Tx, kind string, n int) ([]Skipped, error) {
	table := pgx.Identifier{s.Counters[kind]}.Sanitize()
	tenants := `select tenant_id, livemode from ` + table
	for _, k := range s.Kinds {
		tenants += ` union select tenant_id, livemode from (` + k.Own + `) own`
	}
	rows, err := tx.Query(ctx, `
		insert into `+table+` as c (tenant_id, livemode, next) select tenant_id, livemode, 1 + @n from (`+tenants+`) t
		on conflict (tenant_id, livemode) do update set next = c.next + @n
		returning tenant_id, livemode, next`,
		pgx.NamedArgs{"n": int64(n), "since": time.Now(), "first": ids.First[ids.EventPrefix](time.Now()).UUID()})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Skipped, error) {
		var tenant [16]byte
		out := Skipped{Kind: kind}
		err := row.Scan(&tenant, &out.Livemode, &out.Last)
		out.Tenant, out.First, out.Last = ids.FromUUID[ids.TenantPrefix](tenant), out.Last-int64(n), out.Last-1
		return out, err
	})
}
