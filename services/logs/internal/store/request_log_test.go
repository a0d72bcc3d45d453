package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/logs/internal/domain"
	"holdfast.dev/services/logs/internal/store"
	"holdfast.dev/services/logs/migrations"
)

// Each field returns as it was written, and each filter finds the request and excludes another one.
func TestEachFieldIsStoredAndFiltered(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	ctx := pgtest.Ctx(t, caller.Live)
	c, now := caller.FromContext(ctx), time.Now()
	full := request(c, now, func(l *domain.RequestLog) {
		l.Status, l.Method, l.Route, l.Path, l.QueryNames = 409, "PATCH", "/bookings/{id}", "/bookings/bk_1", []string{"expand", "metadata[order]"}
		l.Code, l.Param, l.CredentialID, l.CredentialType, l.ObjectID = new("slot_unavailable"), new("starts_at"), "gr_1", "oauth", new("bk_1")
		l.DurationMS, l.ClientNetwork, l.UserAgent, l.SDKVersion = 17, new("203.0.113.0/24"), new("holdfast-go/1.0.0 x"), new("holdfast-go/1.0.0")
		l.IdempotencyKeyHash, l.Replayed = []byte{1, 2}, true
	})
	insert(t, db, full, request(c, now))
	got, err := store.RequestLog(ctx, db.App.Read(ctx), full.ID, now.Add(-time.Hour))
	if diff := cmp.Diff(full, got, cmp.Comparer(func(x, y ids.Tenant) bool { return x == y }), cmp.Comparer(func(x, y domain.RequestID) bool { return x == y })); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, f := range []store.Filter{
		{Status: domain.StatusFilter{Exact: 409}},
		{Status: domain.StatusFilter{Class: 4}},
		{Code: "slot_unavailable"},
		{Method: "PATCH"},
		{Route: "/bookings/{id}"},
		{CredentialID: "gr_1"},
		{ObjectID: "bk_1"},
	} {
		if l := list(t, db, ctx, f); len(l) != 1 || l[0].ID != full.ID {
			t.Errorf("%+v: %+v", f, l)
		}
	}
	if l := list(t, db, ctx, store.Filter{}); len(l) != 2 {
		t.Errorf("%+v", l)
	}
	if _, err := store.RequestLog(ctx, db.App.Read(ctx), full.ID, now.Add(time.Minute)); !errors.Is(err, domain.ErrRequestLogNotFound) {
		t.Errorf("before its time: %v", err)
	}
}

// Two tenants in two modes each see their own requests, and count them separately.
func TestTenantsAndModes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	var callers []context.Context
	var all []domain.RequestLog
	for _, tenant := range []ids.Tenant{ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()} {
		for _, mode := range []caller.Mode{caller.Live, caller.Test} {
			ctx := pgtest.CtxOf(t, tenant, mode)
			callers, all = append(callers, ctx), append(all, request(caller.FromContext(ctx), time.Now()))
		}
	}
	insert(t, db, all...)
	for i, ctx := range callers {
		if l := list(t, db, ctx, store.Filter{}); len(l) != 1 || l[0].ID != all[i].ID {
			t.Errorf("%d: %+v", i, l)
		}
		for j := range all {
			_, err := store.RequestLog(ctx, db.App.Read(ctx), all[j].ID, time.Unix(1, 0))
			if (err == nil) != (i == j) {
				t.Errorf("%d reads %d: %v", i, j, err)
			}
		}
	}
	if n := query[int](t, db, `select rows::int from request_log_counts`); !slices.Equal(n, []int{1, 1, 1, 1}) {
		t.Errorf("counts %v", n)
	}
}

// Requests that arrive again, in the same batch or later, are neither stored nor counted twice.
func TestARequestIsStoredOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	ctx := pgtest.Ctx(t, caller.Live)
	l := request(caller.FromContext(ctx), time.Now())
	other := request(caller.FromContext(ctx), time.Now())
	for i, batch := range [][]domain.RequestLog{{l, l}, {l}, {l, other}} {
		if n := insert(t, db, batch...); n != []int{1, 0, 1}[i] {
			t.Errorf("batch %d: %d new", i, n)
		}
	}
	if n := query[int](t, db, `select rows::int from request_log_counts`); !slices.Equal(n, []int{2}) {
		t.Errorf("counts %v", n)
	}
}

// A tenant with too many requests loses its oldest ones, across days, and no other tenant or mode loses any.
func TestTrimDeletesTheOldest(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	ctx := pgtest.Ctx(t, caller.Live)
	c, now := caller.FromContext(ctx), time.Now()
	test := c
	test.Mode = caller.Test
	trim := func(most int, list ...domain.RequestLog) (n int) {
		in(t, db, func(ctx context.Context, tx pg.Tx) (err error) {
			n, err = store.TrimRequestLogs(ctx, tx, list, most)
			return err
		})
		return n
	}
	var mine, others []domain.RequestLog
	for i := range 6 {
		mine = append(mine, request(c, now.Add(time.Duration(i-5)*24*time.Hour)))
		others = append(others, request(test, now.Add(-5*24*time.Hour)))
	}
	insert(t, db, append(others, mine...)...)
	if n := trim(6, mine...); n != 0 {
		t.Errorf("at the bound, %d were deleted", n)
	}
	if n := trim(2, mine[0]); n != 4 {
		t.Errorf("over the bound, %d were deleted", n)
	}
	left := list(t, db, ctx, store.Filter{})
	if len(left) != 2 || left[0].ID != mine[5].ID || left[1].ID != mine[4].ID {
		t.Errorf("left: %+v", left)
	}
	if l := list(t, db, pgtest.CtxOf(t, c.Tenant, caller.Test), store.Filter{}); len(l) != 6 {
		t.Errorf("the other mode has %d", len(l))
	}
	if n := query[int](t, db, `select sum(rows)::int from request_log_counts group by livemode order by livemode`); !slices.Equal(n, []int{6, 2}) {
		t.Errorf("counts %v", n)
	}
}

// Requests with an ended credential, and requests over the rate limit, do not push other entries out of a full log: both together take
// at most a tenth of it. Nothing is deleted below the bound.
func TestRefusedRequestsHaveAShare(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	ctx := pgtest.Ctx(t, caller.Live)
	c, start := caller.FromContext(ctx), time.Now().Add(-time.Hour)
	trim := func(most int, l domain.RequestLog) (n int) {
		in(t, db, func(ctx context.Context, tx pg.Tx) (err error) {
			n, err = store.TrimRequestLogs(ctx, tx, []domain.RequestLog{l}, most)
			return err
		})
		return n
	}
	at := func(i, status int) domain.RequestLog {
		l := request(c, start.Add(time.Duration(i)*time.Second))
		l.Status = status
		return l
	}
	var others, flood []domain.RequestLog
	for i := range 20 {
		others = append(others, at(i, 201))
	}
	for i := range 60 {
		flood = append(flood, at(100+i, []int{401, 429}[i%2]))
	}
	insert(t, db, append(slices.Clone(others), flood...)...)
	if n := trim(80, others[0]); n != 0 {
		t.Errorf("at the bound, %d were deleted", n)
	}
	if n := trim(30, others[0]); n != 50 {
		t.Errorf("over the bound, %d were deleted", n)
	}
	left := list(t, db, ctx, store.Filter{})
	if len(left) != 30 || left[0].ID != flood[59].ID || left[9].ID != flood[50].ID || left[10].ID != others[19].ID || left[29].ID != others[0].ID {
		t.Errorf("left: %d, %+v", len(left), left)
	}
	if n := trim(20, others[0]); n != 10 { // the refused ones are more than their share of 2
		t.Errorf("over a lower bound, %d were deleted", n)
	}
	left = list(t, db, ctx, store.Filter{})
	if len(left) != 20 || left[0].ID != flood[59].ID || left[2].ID != others[19].ID || left[19].ID != others[2].ID {
		t.Errorf("left: %d, %+v", len(left), left)
	}
	if n := query[int](t, db, `select sum(rows)::int from request_log_counts`); !slices.Equal(n, []int{20}) {
		t.Errorf("counts %v", n)
	}
}
