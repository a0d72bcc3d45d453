package testclock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/testclock"
	eventsv1 "holdfast.dev/proto/events/v1"
)

var migrations = fstest.MapFS{"00001_clocks.sql": {Data: []byte(`-- +goose Up
create table test_clocks (
    tenant_id uuid not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    frozen_at timestamptz,
    version   bigint not null,
    primary key (tenant_id, livemode)
);
select protect('test_clocks');
-- +goose Down
drop table test_clocks;
`)}}

func event(t *testing.T, tenant ids.Tenant, kind string, version int64, object string) kafkax.Message {
	t.Helper()
	raw, err := proto.Marshal(&eventsv1.Event{
		Id: ids.New[ids.EventPrefix]().String(), Type: kind, TenantId: tenant.String(), Livemode: true,
		ObjectId: tenant.String(), ResourceVersion: version, CreatedAt: timestamppb.New(time.Unix(0, 0)), Object: []byte(object),
	})
	if err != nil {
		t.Fatal(err)
	}
	return kafkax.Message{Topic: "identity", Key: tenant.String(), Value: raw}
}

func tenantUpdated(t *testing.T, tenant ids.Tenant, version int64, clock string) kafkax.Message {
	t.Helper()
	return event(t, tenant, "tenant.updated", version, `{"clock":`+clock+`}`)
}

func known(ctx context.Context, t *testing.T, db *pg.DB) string {
	t.Helper()
	c, err := pg.One(ctx, db.Read(ctx), pgx.RowToStructByName[testclock.Clock], pgx.ErrNoRows, testclock.Known, pg.Args{})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	if c.FrozenAt == nil {
		return fmt.Sprint("real ", c.Version)
	}
	return fmt.Sprint(c.FrozenAt.UTC().Format(time.RFC3339), " ", c.Version)
}

// The clock is updated by the tenant's events, applies only to test mode, and never returns to an older state.
func TestProjection(t *testing.T) {
	t.Parallel()
	db, tenant := pgtest.New(t, migrations), ids.New[ids.TenantPrefix]()
	h := &testclock.Events{DB: db.App, Service: "tests"}
	handle := func(m kafkax.Message) {
		t.Helper()
		if err := h.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want string) {
		t.Helper()
		if got := known(pgtest.CtxOf(t, tenant, caller.Test), t, db.App); got != want {
			t.Errorf("known: %s, want %s", got, want)
		}
	}
	expect("real 0")
	second := tenantUpdated(t, tenant, 2, `"2030-01-01T00:00:00Z"`)
	handle(second)
	handle(second)
	expect("2030-01-01T00:00:00Z 2")
	handle(tenantUpdated(t, tenant, 5, `null`))
	handle(tenantUpdated(t, tenant, 4, `"2031-01-01T00:00:00Z"`)) // late
	expect("real 5")
	handle(tenantUpdated(t, tenant, 6, `"2032-01-01T00:00:00+02:00"`))
	expect("2031-12-31T22:00:00Z 6")
	handle(event(t, tenant, "tenant.merged", 7, `{}`)) // a type of the future
	expect("2031-12-31T22:00:00Z 6")
	for _, other := range []context.Context{pgtest.CtxOf(t, tenant, caller.Live), pgtest.Ctx(t, caller.Test)} {
		if got := known(other, t, db.App); got != "real 0" {
			t.Errorf("another mode or tenant knows %s", got)
		}
	}
	for name, m := range map[string]kafkax.Message{
		"no JSON": tenantUpdated(t, tenant, 8, `{`), "no time": tenantUpdated(t, tenant, 8, `"x"`),
		"no tenant": tenantUpdated(t, ids.Tenant{}, 8, `null`), "no event": {Value: []byte("nonsense")},
	} {
		if err := h.Handle(t.Context(), m); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The caller's clock is stored only in test mode, and only if the caller has the tenant's version.
func TestSave(t *testing.T) {
	t.Parallel()
	db, at := pgtest.New(t, migrations), time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		mode    caller.Mode
		version int64
		want    string
	}{{caller.Test, 3, "2030-01-01T00:00:00Z 3"}, {caller.Test, 0, "real 0"}, {caller.Live, 3, "real 0"}} {
		ctx := pgtest.Ctx(t, tc.mode)
		c := caller.FromContext(ctx)
		c.Clock, c.PolicyVersion = &at, tc.version
		ctx = caller.With(ctx, c)
		if err := db.App.Tx(ctx, testclock.Save); err != nil {
			t.Fatal(err)
		}
		if got := known(ctx, t, db.App); got != tc.want {
			t.Errorf("%s, version %d: %s, want %s", tc.mode, tc.version, got, tc.want)
		}
	}
}

func TestNow(t *testing.T) {
	t.Parallel()
	real, at := time.Unix(1, 0), time.Unix(2, 0)
	if (testclock.Clock{}).Now(real) != real || (testclock.Clock{FrozenAt: &at}).Now(real) != at {
		t.Error("a clock without a time shows real time, another its own")
	}
}
