// Package repair makes the databases of the services agree after they were restored to earlier moments, which may differ. Each
// service lists what it holds of the objects of other services ("copies"). The owner of an object compares the copies with its own
// row, which is the truth:
//
//   - A copy is older, or missing although the object changed recently: the owner publishes the object again.
//   - A copy is newer: the owner has lost changes. It raises the version above the copy's and publishes the object, so that the
//     older state replaces the copy everywhere.
//   - The owner has no such object: it was lost. The services that hold a copy forget it.
//
// The log of published events counts as a copy too. Copies travel as lines of JSON between the commands, so that each command needs
// only the database of its own service.
package repair

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
)

// Copy is what one service holds of an object of another service. It is one line of JSON.
type Copy struct {
	Holder   string     `json:"holder"` // name of the service
	Tenant   ids.Tenant `json:"tenant"`
	Livemode bool       `json:"livemode"`
	ID       string     `json:"id"`               // public id of the object, such as bk_…
	Version  int64      `json:"version"`          // of the object
	Event    string     `json:"event,omitempty"`  // in the log of events: the type of the event
	Number   string     `json:"number,omitempty"` // human-readable number in the event
}

// maxLine bounds one line of JSON.
const maxLine = 64 << 10

// WriteCopies writes the rows of a query as lines of JSON: prefix, tenant_id, livemode, key, version, event, number. @since is
// the time since which the log of events is read, and @first the first uuid of that time. url connects as the owner of the database. It holds one row in memory at a time.
func WriteCopies(ctx context.Context, url, holder, query string, since time.Time, out io.Writer) error {
	conn, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, query, pgx.NamedArgs{"since": since, "first": ids.First[ids.EventPrefix](since).UUID()})
	if err != nil {
		return fmt.Errorf("read copies: %w", err)
	}
	buffered := bufio.NewWriter(out)
	lines := json.NewEncoder(buffered)
	var prefix, key string
	var tenant [16]byte
	c := Copy{Holder: holder}
	_, err = pgx.ForEachRow(rows, []any{&prefix, &tenant, &c.Livemode, &key, &c.Version, &c.Event, &c.Number}, func() error {
		c.Tenant, c.ID = ids.FromUUID[ids.TenantPrefix](tenant), ids.Public(prefix, key)
		return lines.Encode(c)
	})
	if err != nil {
		return fmt.Errorf("read copies: %w", err)
	}
	return buffered.Flush()
}

// load copies the lines of in into the temporary table repair_copies of the connection, and returns their number.
func load(ctx context.Context, conn *pgx.Conn, in io.Reader) (int64, error) {
	_, err := conn.Exec(ctx, `create temporary table repair_copies (holder text not null, prefix text not null, tenant_id uuid not null,
		livemode boolean not null, key text collate "C" not null, version bigint not null, event text not null, number text not null)`)
	if err != nil {
		return 0, fmt.Errorf("create table of copies: %w", err)
	}
	lines := &lines{scanner: bufio.NewScanner(in)}
	lines.scanner.Buffer(make([]byte, 0, maxLine), maxLine)
	columns := []string{"holder", "prefix", "tenant_id", "livemode", "key", "version", "event", "number"}
	n, err := conn.CopyFrom(ctx, pgx.Identifier{"repair_copies"}, columns, lines)
	if err != nil {
		return 0, fmt.Errorf("load copies: %w", err)
	}
	_, err = conn.Exec(ctx, `analyze repair_copies`)
	return n, err
}

// lines is a pgx.CopyFromSource.
type lines struct {
	scanner *bufio.Scanner
	n       int
}

// Next implements pgx.CopyFromSource.
func (l *lines) Next() bool { l.n++; return l.scanner.Scan() }

// Err implements pgx.CopyFromSource.
func (l *lines) Err() error { return l.scanner.Err() }

// Values implements pgx.CopyFromSource.
func (l *lines) Values() ([]any, error) {
	var c Copy
	if err := json.Unmarshal(l.scanner.Bytes(), &c); err != nil {
		return nil, fmt.Errorf("line %d is not a copy that `repair copies` wrote: %w", l.n, err)
	}
	prefix, key := ids.Stored(c.ID)
	return []any{c.Holder, prefix, c.Tenant.UUID(), c.Livemode, key, c.Version, c.Event, c.Number}, nil
}

func connect(ctx context.Context, url string) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("reach database: %w", err)
	}
	if err := pg.CheckOwner(ctx, conn); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return conn, nil
}
