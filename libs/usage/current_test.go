package usage_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/usage"
	"holdfast.dev/proto/internalapi"
)

// countThings counts the things that were created on the day, as bookings.
func countThings(ctx context.Context, q pg.Q, day usage.Day, to *internalapi.TenantUsage) (err error) {
	to.Bookings, err = pg.One(ctx, q, pgx.RowTo[int64], pgx.ErrNoRows, `
		select count(*) from things where tenant_id = @tenant and livemode = @live and created_at >= @from and created_at < @to`, pg.Args{"from": day.From, "to": day.To})
	return err
}

// The running day of a tenant has the rows of both of its modes and no others, without sealing the day or waiting for what was not received.
// When the day is over, the measurement returns the same numbers.
func TestCurrent(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, things)
	tenant, other := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	day := usage.Day{From: time.Now().UTC()}
	day.To = day.From.Add(time.Hour)
	fill(t, db, tenant, caller.Live, 3)
	fill(t, db, tenant, caller.Test, 5)
	fill(t, db, other, caller.Live, 70)
	var sealed atomic.Int64
	ready := false
	s := &usage.Source{
		Service: "things", DB: db.App, Count: countThings,
		Ready: func(context.Context) (bool, error) { return ready, nil },
		Seal:  func(context.Context, usage.Day) error { sealed.Add(1); return nil },
	}
	current, err := s.Current(pgtest.CtxOf(t, tenant, caller.Live), day)
	if err != nil || len(current) != 2 || sealed.Load() != 0 {
		t.Fatalf("%+v, %v, sealed %d times", current, err, sealed.Load())
	}
	for i, want := range []internalapi.TenantUsage{{TenantID: tenant.String(), Mode: "live", Bookings: 3}, {TenantID: tenant.String(), Mode: "test", Bookings: 5}} {
		if fmt.Sprintf("%+v", current[i]) != fmt.Sprintf("%+v", want) {
			t.Errorf("%+v, want %+v", current[i], want)
		}
	}
	day.To, ready = time.Now().UTC(), true // the day is over
	page, err := s.Measure(t.Context(), day, []ids.Tenant{tenant})
	if err != nil || len(page.Data) != 2 || sealed.Load() != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	for i, m := range page.Data {
		m.StoredRows, m.StoredBytes = nil, nil
		if fmt.Sprintf("%+v", m) != fmt.Sprintf("%+v", current[i]) {
			t.Errorf("recorded %+v, and before %+v", m, current[i])
		}
	}
	if _, err := s.Current(t.Context(), day); err == nil {
		t.Error("measured without a tenant")
	}
}

// The measurements of a tenant that take too long end with an error, and leave a place to those of another tenant.
func TestCurrentIsLimited(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, things)
	slow := ids.New[ids.TenantPrefix]()
	begun := make(chan struct{}, 10)
	s := &usage.Source{Service: "things", DB: db.App, Count: func(ctx context.Context, q pg.Q, _ usage.Day, _ *internalapi.TenantUsage) error {
		if caller.FromContext(ctx).Tenant != slow {
			return nil
		}
		begun <- struct{}{}
		_, err := pg.One(ctx, q, pgx.RowTo[string], pgx.ErrNoRows, `select pg_sleep(60)::text`)
		return err
	}}
	failed := make(chan error)
	const calls = 6
	for range calls {
		go func() {
			_, err := s.Current(pgtest.CtxOf(t, slow, caller.Live), today())
			failed <- err
		}()
	}
	<-begun
	if got, err := s.Current(pgtest.CtxOf(t, ids.New[ids.TenantPrefix](), caller.Live), today()); err != nil || len(got) != 2 {
		t.Errorf("another tenant: %+v, %v", got, err)
	}
	for range calls {
		if err := <-failed; !errors.Is(err, apperr.ErrUnavailable) {
			t.Errorf("a slow tenant: %v", err)
		}
	}
}
