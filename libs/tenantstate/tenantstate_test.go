package tenantstate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/tenantstate"
	eventsv1 "holdfast.dev/proto/events/v1"
)

var migrations = fstest.MapFS{"00001_states.sql": {Data: []byte(`-- +goose Up
create table tenant_states (
    tenant_id uuid not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    status    text not null,
    version   bigint not null,
    primary key (tenant_id, livemode)
);
select protect('tenant_states');
-- +goose Down
drop table tenant_states;
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

// The state applies to both modes of its tenant only. Deliveries of a closing tenant wait, and its data can be read. Changed runs once for each change and mode, in its transaction, and a late or
// repeated event changes nothing.
func TestEvents(t *testing.T) {
	t.Parallel()
	db, tenant := pgtest.New(t, migrations), ids.New[ids.TenantPrefix]()
	var changes []string
	fail := errors.New("no effect")
	var failing error
	h := &tenantstate.Events{DB: db.App, Service: "tests", Changed: func(ctx context.Context, _ pg.Tx, suspended bool) error {
		changes = append(changes, fmt.Sprint(caller.FromContext(ctx).Mode, " ", suspended))
		return failing
	}}
	expect := func(m kafkax.Message, suspended bool, want ...string) {
		t.Helper()
		changes = nil
		if err := h.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(changes, want) {
			t.Errorf("changes %v, want %v", changes, want)
		}
		for _, mode := range []caller.Mode{caller.Live, caller.Test} {
			ctx := pgtest.CtxOf(t, tenant, mode)
			if got, err := tenantstate.Suspended(ctx, db.App.Read(ctx)); err != nil || got != suspended {
				t.Errorf("%s: suspended %v, %v; want %v", mode, got, err, suspended)
			}
		}
	}
	active, suspended, closing, erasing := `{"status":"active"}`, `{"status":"suspended"}`, `{"status":"closing"}`, `{"status":"erasing"}`
	expect(event(t, tenant, "tenant.updated", 2, `{}`), false) // of the previous release
	second := event(t, tenant, "tenant.updated", 3, suspended)
	expect(second, true, "live true", "test true")
	expect(second, true)
	expect(event(t, tenant, "tenant.updated", 4, suspended), true) // another setting
	expect(event(t, tenant, "tenant.updated", 2, active), true)    // late
	expect(event(t, tenant, "tenant.merged", 9, active), true)     // a type of the future
	failing = fail
	if err := h.Handle(t.Context(), event(t, tenant, "tenant.updated", 5, active)); !errors.Is(err, fail) {
		t.Errorf("a change whose effect failed: %v", err)
	}
	failing = nil
	expect(event(t, tenant, "tenant.updated", 5, active), false, "live false", "test false") // it was rolled back, so it runs again
	third := ids.New[ids.TenantPrefix]()
	expect(event(t, tenant, "tenant.updated", 5, closing), false) // the version is known
	tenant, third = third, tenant
	expect(event(t, tenant, "tenant.updated", 2, closing), false, "live true", "test true") // its data can be read
	expect(event(t, tenant, "tenant.updated", 3, erasing), true, "live true", "test true")
	tenant = third
	other := pgtest.Ctx(t, caller.Live)
	expect(event(t, tenant, "tenant.updated", 6, suspended), true, "live true", "test true")
	if got, err := tenantstate.Suspended(other, db.App.Read(other)); err != nil || got {
		t.Errorf("another tenant: %v, %v", got, err)
	}
	for name, m := range map[string]kafkax.Message{
		"no JSON": event(t, tenant, "tenant.updated", 8, `{`), "no tenant": event(t, ids.Tenant{}, "tenant.updated", 8, `{}`), "no event": {Value: []byte("nonsense")},
	} {
		if err := h.Handle(t.Context(), m); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
