package apitest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
)

// named holds the writes that emitted an event with the caller as its actor. The audit log creates its records from events.
var named struct {
	mu         sync.Mutex
	operations map[string]bool
}

// MainOfWrites is Main. When all tests ran, it also fails if no test saw an event of a write that names the caller. others are the
// writes without an event, whose audit records are created in another way.
func MainOfWrites(m *testing.M, service string, elsewhere map[string][]int, others ...string) int {
	code := Main(m, service, elsewhere)
	if code != 0 || checker == nil || !allRan() {
		return code
	}
	spec, err := contract.Public()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, op := range spec.For(service) {
		if !reads(op.Method) && !named.operations[op.ID] && !slices.Contains(others, op.ID) {
			fmt.Println("no test has seen an event that names the caller of:", op.ID)
			code = 1
		}
	}
	return code
}

func reads(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// watchWrite returns a function that checks whether a successful write emitted an event of the caller in ctx after this call. Each
// operation is checked until one event is found.
func (w *Env) watchWrite(ctx context.Context, method, target string) (done func(status int)) {
	w.T.Helper()
	op := w.operation(method, target)
	if op == "" {
		return func(int) {}
	}
	before, ok := w.lastEvent(ctx)
	if !ok {
		return func(int) {}
	}
	return func(status int) {
		if status/100 == 2 && w.leftEvent(ctx, before) {
			named.mu.Lock()
			defer named.mu.Unlock()
			if named.operations == nil {
				named.operations = map[string]bool{}
			}
			named.operations[op] = true
		}
	}
}

// operation returns the id of a public write that has not been checked yet, or "".
func (w *Env) operation(method, target string) string {
	w.T.Helper()
	path, public := strings.CutPrefix(target, "/api/v1")
	if !public || reads(method) {
		return ""
	}
	spec, err := contract.Public()
	if err != nil {
		w.T.Fatal(err)
	}
	path, _, _ = strings.Cut(path, "?")
	op, _, _ := contracttest.Match(spec, method, path)
	named.mu.Lock()
	defer named.mu.Unlock()
	if op == nil || named.operations[op.ID] {
		return ""
	}
	return op.ID
}

// lastEvent returns the number of the last event, and false when a test has locked the table.
func (w *Env) lastEvent(ctx context.Context) (seq int64, ok bool) {
	ok = w.worker(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		seq, err = pg.One(ctx, tx, pgx.RowTo[int64], nil, `select coalesce(max(seq), 0) from outbox`)
		return err
	})
	return seq, ok
}

// leftEvent reports whether an event with a number above seq belongs to the caller's request and names the caller.
func (w *Env) leftEvent(ctx context.Context, seq int64) (found bool) {
	c := caller.FromContext(ctx)
	return w.worker(ctx, func(ctx context.Context, tx pg.Tx) error {
		messages, err := pg.Many(ctx, tx, pgx.RowTo[[]byte], `select message from outbox where seq > $1`, seq)
		for _, m := range messages {
			e, err := outbox.Decode(m)
			if err != nil {
				return err
			}
			found = found || e.GetRequestId() == c.RequestID && e.GetActor() == c.Credential && e.GetTenantId() == c.Tenant.String()
		}
		return err
	}) && found
}

// worker runs fn on the outbox, and reports whether it succeeded. It does not wait for a lock.
func (w *Env) worker(ctx context.Context, fn func(ctx context.Context, tx pg.Tx) error) bool {
	return w.DB.Worker.SystemTx(context.WithoutCancel(ctx), func(ctx context.Context, tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `lock table outbox in access share mode nowait`); err != nil {
			return err
		}
		return fn(ctx, tx)
	}) == nil
}
