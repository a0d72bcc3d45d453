package consume_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/consume"
	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/migrations"
)

func message(t *testing.T, c caller.Caller, id ids.Customer, kind string, version int64, object string) kafkax.Message {
	t.Helper()
	raw, err := proto.Marshal(&eventsv1.Event{
		Id: ids.New[ids.EventPrefix]().String(), Type: kind, TenantId: c.Tenant.String(), Livemode: c.Live(),
		ObjectId: id.String(), ResourceVersion: version, CreatedAt: timestamppb.New(time.Unix(0, 0)), Object: []byte(object),
	})
	if err != nil {
		t.Fatal(err)
	}
	return kafkax.Message{Topic: "customers", Key: id.String(), Value: raw}
}

func TestProjection(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS), pgtest.Ctx(t, caller.Test)
	h := &consume.Customers{App: &app.Customers{DB: db.App}}
	id, c := ids.New[ids.CustomerPrefix](), caller.FromContext(ctx)
	handle := func(m kafkax.Message) {
		t.Helper()
		if err := h.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	known := func() domain.Customer {
		t.Helper()
		got, err := row[domain.Customer](ctx, db, theCustomer)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	body := func(name string) string { return fmt.Sprintf(`{"id":%q,"name":%q}`, id, name) }
	created := message(t, c, id, "customer.created", 1, body("Ann"))
	third := message(t, c, id, "customer.updated", 3, body("Cec"))
	handle(created)
	handle(created)
	if got := known(); got.Name != "Ann" || got.Version != 1 {
		t.Errorf("%+v", got)
	}
	handle(third)
	handle(message(t, c, id, "customer.updated", 2, body("Bea"))) // late
	handle(created)                                               // repeated
	if got := known(); got.Name != "Cec" || got.Version != 3 {
		t.Errorf("an older state came through: %+v", got)
	}
	// The inbox alone prevents a repetition, regardless of the current content of the projection.
	overwrite := func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `update customers set name = 'lost', version = 0`)
		return err
	}
	if err := db.App.Tx(ctx, overwrite); err != nil {
		t.Fatal(err)
	}
	handle(created)
	if got := known(); got.Name != "lost" {
		t.Errorf("an event took effect twice: %+v", got)
	}
	handle(message(t, c, id, "customer.merged", 4, body("Dan"))) // an unknown future type
	handle(message(t, c, id, "customer.erased", 5, `{}`))
	handle(message(t, c, id, "customer.updated", 6, body("Eve")))
	if got := known(); got.Name != "" || !got.Erased {
		t.Errorf("erased for good: %+v", got)
	}
	if other, err := row[domain.Customer](pgtest.Ctx(t, caller.Test), db, theCustomer); !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("another tenant sees %+v, %v", other, err)
	}
	rows := 0
	err := db.Worker.SystemTx(t.Context(), countInbox(&rows))
	if err != nil || rows != 5 {
		t.Errorf("%d inbox rows for 5 events, %v", rows, err)
	}
}

func TestPoison(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS), pgtest.Ctx(t, caller.Test)
	h := &consume.Customers{App: &app.Customers{DB: db.App}}
	c, id := caller.FromContext(ctx), ids.New[ids.CustomerPrefix]()
	noTenant := message(t, caller.Caller{}, id, "customer.created", 1, `{}`)
	for name, m := range map[string]kafkax.Message{
		"no event": {Value: []byte("nonsense")}, "no tenant": noTenant, "no JSON": message(t, c, id, "customer.created", 1, `{`),
		"no customer": message(t, c, ids.Customer{}, "customer.created", 1, `{"name":"x"}`),
	} {
		if err := h.Handle(t.Context(), m); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A message is not a poison message just because the database is down: the partition waits.
	db.App.Close()
	ended, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := h.Handle(ended, message(t, c, id, "customer.created", 1, `{"name":"x"}`)); err == nil || errors.Is(err, kafkax.ErrPoison) {
		t.Errorf("got %v", err)
	}
}

const theCustomer = `select id, name, version, erased from customers`

// row reads the only row that the caller of ctx sees.
func row[T any](ctx context.Context, db *pgtest.DB, sql string) (T, error) {
	rows, err := db.App.Read(ctx).Query(ctx, sql)
	if err != nil {
		var none T
		return none, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
}
