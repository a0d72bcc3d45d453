package consume_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pgtest"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/consume"
	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/migrations"
)

// bookingMessage is an event about a booking with this object.
func bookingMessage(t *testing.T, c caller.Caller, kind string, id ids.Booking, version int64, object string) kafkax.Message {
	t.Helper()
	raw, err := proto.Marshal(&eventsv1.Event{
		Id: ids.New[ids.EventPrefix]().String(), Type: kind, TenantId: c.Tenant.String(), Livemode: c.Live(),
		ObjectId: id.String(), ResourceVersion: version, CreatedAt: timestamppb.New(time.Unix(0, 0)), Object: []byte(object),
	})
	if err != nil {
		t.Fatal(err)
	}
	return kafkax.Message{Topic: "bookings", Key: id.String(), Value: raw}
}

// The projection keeps the newest state of a booking that it was told of, in its tenant and mode, each event once.
func TestBookingProjection(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS), pgtest.Ctx(t, caller.Test)
	pgtest.Scoped(t, db)
	h, c := consume.New(&app.Catalogue{DB: db.App}, &app.BookingProjection{DB: db.App}, nil), caller.FromContext(ctx)
	id, customer := ids.New[ids.BookingPrefix](), ids.New[ids.CustomerPrefix]()
	handle := func(m kafkax.Message) {
		t.Helper()
		if err := h.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	body := func(status, customer string, total int64) string {
		return fmt.Sprintf(`{"status":%q,"customer_id":%s,"total_amount":{"amount":%d,"currency":"USD"},"number":"B-1"}`, status, customer, total)
	}
	expect := func(want domain.Booking) {
		t.Helper()
		want.ID = id
		if got, err := store.Booking(ctx, db.App.Read(ctx), id); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	usd := func(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: "USD"} }
	first := bookingMessage(t, c, "booking.created", id, 1, body("pending", "null", 5))
	handle(first)
	expect(domain.Booking{Status: "pending", Total: usd(5), Version: 1})
	handle(bookingMessage(t, c, "booking.updated", id, 3, body("confirmed", `"`+customer.String()+`"`, 7)))
	handle(bookingMessage(t, c, "booking.updated", id, 2, body("pending", "null", 6))) // late
	handle(first)                                                                      // again
	expect(domain.Booking{Status: "confirmed", CustomerID: customer, Total: usd(7), Version: 3})
	handle(bookingMessage(t, c, "booking.merged", id, 4, `{}`)) // a type of the future
	handle(bookingMessage(t, c, "booking.cancelled", id, 5, body("cancelled", "null", 7)))
	expect(domain.Booking{Status: "cancelled", Total: usd(7), Version: 5})
	for _, other := range []caller.Mode{caller.Live, caller.Test} {
		stranger := pgtest.Ctx(t, other)
		if other == caller.Live {
			stranger = pgtest.CtxOf(t, c.Tenant, caller.Live)
		}
		if got, err := store.Booking(stranger, db.App.Read(stranger), id); !errors.Is(err, domain.ErrBookingNotFound) {
			t.Errorf("others see %+v, %v", got, err)
		}
	}
	for name, m := range map[string]kafkax.Message{
		"no id":       bookingMessage(t, c, "booking.created", ids.Booking{}, 9, body("pending", "null", 5)),
		"no JSON":     bookingMessage(t, c, "booking.created", id, 9, `{`),
		"no total":    bookingMessage(t, c, "booking.created", id, 9, `{"status":"pending"}`),
		"no customer": bookingMessage(t, c, "booking.created", id, 9, body("pending", `"x"`, 5)),
	} {
		if err := h.Handle(t.Context(), m); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
