package consume_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/consume"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/migrations"
)

func message(t *testing.T, c caller.Caller, kind, object string, version int64) kafkax.Message {
	t.Helper()
	raw, err := proto.Marshal(&eventsv1.Event{
		Id: ids.New[ids.EventPrefix]().String(), Type: kind, TenantId: c.Tenant.String(), Livemode: c.Live(),
		ObjectId: object, ResourceVersion: version, CreatedAt: timestamppb.New(time.Unix(0, 0)), Object: []byte(`{}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	return kafkax.Message{Topic: "bookings", Key: object, Value: raw}
}

func TestCatalogueProjection(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS), pgtest.Ctx(t, caller.Test)
	pgtest.Scoped(t, db)
	h, c := consume.New(&app.Catalogue{DB: db.App}, &app.BookingProjection{Worker: db.Worker}, nil, nil, nil), caller.FromContext(ctx)
	service, unit, pkg := ids.New[ids.ServicePrefix]().String(), ids.New[ids.UnitPrefix]().String(), ids.New[ids.PackagePrefix]().String()
	handle := func(m kafkax.Message) {
		t.Helper()
		if err := h.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	known := func(ctx context.Context) int {
		t.Helper()
		found, err := store.CatalogueKnows(ctx, db.App.Read(ctx), []string{service, unit, pkg})
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	first := message(t, c, "service.updated", service, 3)
	handle(first)
	handle(message(t, c, "unit.updated", unit, 1))
	handle(message(t, c, "package.updated", pkg, 1))
	handle(message(t, c, "service.merged", ids.New[ids.ServicePrefix]().String(), 1)) // an unknown future type
	if got := known(ctx); got != 3 {
		t.Errorf("%d of 3 known", got)
	}
	other := pgtest.CtxOf(t, c.Tenant, caller.Live)
	if live, stranger := known(other), known(pgtest.Ctx(t, caller.Test)); live != 0 || stranger != 0 {
		t.Errorf("the other mode knows %d, another tenant %d", live, stranger)
	}
	// The inbox alone rejects a repetition, regardless of the projection.
	if err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `delete from catalogue_items where tenant_id = @tenant and livemode = @live and id = @id`, pg.Args{"id": service})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	handle(first)
	if got := known(ctx); got != 2 {
		t.Errorf("an event took effect twice: %d known", got)
	}
}

func TestPoison(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS), pgtest.Ctx(t, caller.Test)
	h, c := consume.New(&app.Catalogue{DB: db.App}, &app.BookingProjection{Worker: db.Worker}, nil, nil, nil), caller.FromContext(ctx)
	for name, m := range map[string]kafkax.Message{
		"no event":      {Topic: "bookings", Value: []byte("nonsense")},
		"no tenant":     message(t, caller.Caller{}, "unit.updated", ids.New[ids.UnitPrefix]().String(), 1),
		"no unit":       message(t, c, "unit.updated", ids.New[ids.CustomerPrefix]().String(), 1),
		"no such topic": {Topic: "payments"},
	} {
		if err := h.Handle(t.Context(), m); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A message is not a poison message just because the database is down: the partition waits.
	db.App.Close()
	ended, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := h.Handle(ended, message(t, c, "unit.updated", ids.New[ids.UnitPrefix]().String(), 1))
	if err == nil || errors.Is(err, kafkax.ErrPoison) {
		t.Errorf("got %v", err)
	}
}
