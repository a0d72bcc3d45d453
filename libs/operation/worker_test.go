package operation_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// noKeys are the keys of operations that no request began.
type noKeys struct{}

func (noKeys) Claim(context.Context, pg.Tx) (string, bool, error) { return "", false, nil }
func (noKeys) Begin(context.Context, pg.Tx, string)               {}
func (noKeys) Release(context.Context, pg.Tx) error               { return nil }
func (noKeys) Hold(context.Context, pg.Tx, string) error          { return nil }
func (noKeys) Free(context.Context, pg.Tx, string) error          { return nil }

// elsewhere is an operation whose row another process has locked.
type elsewhere struct{}

func (elsewhere) Name() string { return "held" }

func (elsewhere) Begin(context.Context, pg.Tx, string) (bool, error) {
	return false, operation.ErrUnderWay
}

func (elsewhere) Call(context.Context) error                 { return errBoom }
func (elsewhere) Finish(context.Context, pg.Tx) (int, error) { return 0, errBoom }
func (elsewhere) Release(context.Context, pg.Tx) error       { return errBoom }

// A row that another process has locked is not retried for a while. This is not a failure.
func TestWorkersLeaveARowToAnotherProcess(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, fstest.MapFS{"00001_none.sql": {Data: []byte("-- +goose Up\nselect 1;\n")}})
	runner, owner := operation.Runner{DB: db.App, Keys: noKeys{}}, operation.Owner{TenantID: ids.New[ids.TenantPrefix]()}
	const most = 100
	var begun atomic.Int32
	w := operation.Workers[string]{
		Service: "test", DB: db.Worker, Now: time.Now, Owner: func(string) operation.Owner { return owner },
		Find: func(context.Context, pg.Tx, time.Time, []operation.Owner, int) ([]string, error) {
			if begun.Load() == most {
				return nil, nil
			}
			return []string{"row"}, nil
		},
		Do: func(ctx context.Context, row string) error {
			begun.Add(1)
			if err := operation.Resume(ctx, runner, elsewhere{}); err != nil {
				return fmt.Errorf("%s: %w", row, err)
			}
			return nil
		},
		Report: func(_ context.Context, count int, errs []error) {
			if count != 0 {
				t.Errorf("%d have failed: %v", count, errs)
			}
		},
	}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := begun.Load(); n > 3 {
		t.Errorf("begun %d times", n)
	}
}
