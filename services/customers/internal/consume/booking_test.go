package consume_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
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

// bookingMessage returns an event about a booking with this object.
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

// TestBookingProjection checks that the projection stores the newest reported state of a booking in its tenant and mode, and
// applies each event once.
func TestBookingProjection(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS), pgtest.Ctx(t, caller.Test)
	pgtest.Scoped(t, db)
	h, c := consume.New(&app.Catalogue{DB: db.App}, &app.BookingProjection{Worker: db.Worker}, nil, nil, nil), caller.FromContext(ctx)
	id, customer, service := ids.New[ids.BookingPrefix](), ids.New[ids.CustomerPrefix](), ids.New[ids.ServicePrefix]()
	handle := func(m kafkax.Message) {
		t.Helper()
		if err := h.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	body := func(status, customer string, total int64) string {
		return fmt.Sprintf(`{"status":%q,"customer_id":%s,"service_id":%q,"gross_amount":{"amount":%d,"currency":"USD"},"number":"B-1"}`, status, customer, service, total)
	}
	expect := func(want domain.Booking) {
		t.Helper()
		want.ID, want.ServiceID = id, service
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
	handle(first)                                                                      // repeated
	expect(domain.Booking{Status: "confirmed", CustomerID: customer, Total: usd(7), Version: 3})
	handle(bookingMessage(t, c, "booking.updated", id, 4, strings.TrimSuffix(body("pending", "null", 7), "}")+`,"gross_amount":{"amount":8,"currency":"USD"}}`))
	expect(domain.Booking{Status: "pending", Total: usd(8), Version: 4})
	handle(bookingMessage(t, c, "booking.merged", id, 4, `{}`)) // an unknown future type
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

// TestBatchOfBookings checks that a batch is one transaction for bookings of any tenants and modes. The newest state of each
// booking remains, in any order of its events, and a repeated batch changes nothing.
func TestBatchOfBookings(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS), pgtest.Ctx(t, caller.Test)
	h := consume.New(&app.Catalogue{DB: db.App}, &app.BookingProjection{Worker: db.Worker}, nil, nil, nil)
	tenant := caller.FromContext(ctx).Tenant
	live, other := pgtest.CtxOf(t, tenant, caller.Live), pgtest.Ctx(t, caller.Test)
	id := ids.New[ids.BookingPrefix]()
	event := func(ctx context.Context, version int64, status string) kafkax.Message {
		return bookingMessage(t, caller.FromContext(ctx), "booking.updated", id, version,
			fmt.Sprintf(`{"status":%q,"customer_id":null,"gross_amount":{"amount":%d,"currency":"USD"}}`, status, version))
	}
	batch := []kafkax.Message{
		event(ctx, 2, "confirmed"), event(live, 4, "completed"), event(other, 3, "cancelled"), event(ctx, 2, "confirmed"), event(ctx, 1, "pending"),
	}
	states := func() (got []string) {
		for _, ctx := range []context.Context{ctx, live, other} {
			b, err := store.Booking(ctx, db.App.Read(ctx), id)
			if err != nil && !errors.Is(err, domain.ErrBookingNotFound) {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %d %d", b.Status, b.Version, b.Total.Minor))
		}
		return got
	}
	broken := bookingMessage(t, caller.FromContext(ctx), "booking.updated", id, 9, `{`)
	catalogue := bookingMessage(t, caller.FromContext(ctx), "unit.updated", id, 9, `{}`)
	for name, m := range map[string]kafkax.Message{"an event that cannot be read": broken, "a change of the catalogue": catalogue} {
		if err := h.HandleBatch(t.Context(), append(batch[:len(batch):len(batch)], m)); err == nil {
			t.Errorf("a batch with %s has passed", name)
		}
	}
	if got := states(); !slices.Equal(got, []string{" 0 0", " 0 0", " 0 0"}) {
		t.Errorf("half of a batch: %v", got)
	}
	want := []string{"confirmed 2 2", "completed 4 4", "cancelled 3 3"}
	for range 2 {
		if err := h.HandleBatch(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		if got := states(); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if err := h.HandleBatch(t.Context(), []kafkax.Message{{Topic: "identity"}, {Topic: "identity"}}); err == nil {
		t.Error("a batch of another topic has passed")
	}
}

// TestParallelBatches checks that batches with the same bookings do not deadlock.
func TestParallelBatches(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS), pgtest.Ctx(t, caller.Test)
	h, c := consume.New(&app.Catalogue{DB: db.App}, &app.BookingProjection{Worker: db.Worker}, nil, nil, nil), caller.FromContext(ctx)
	const bookings, versions = 20, 5
	list := make([]ids.Booking, bookings)
	var all []kafkax.Message
	for i := range list {
		list[i] = ids.New[ids.BookingPrefix]()
		for v := range versions {
			all = append(all, bookingMessage(t, c, "booking.updated", list[i], int64(v+1), `{"status":"pending","gross_amount":{"amount":1,"currency":"USD"}}`))
		}
	}
	var group sync.WaitGroup
	for range 8 {
		mine := slices.Clone(all)
		rand.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		group.Go(func() {
			for batch := range slices.Chunk(mine, 25) {
				if err := h.HandleBatch(t.Context(), batch); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	for _, id := range list {
		if b, err := store.Booking(ctx, db.App.Read(ctx), id); err != nil || b.Version != versions {
			t.Errorf("%+v, %v", b, err)
		}
	}
}
