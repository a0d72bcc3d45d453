package consume_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/consume"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/migrations"
)

func message(t *testing.T, c caller.Caller, kind string, change ...func(*eventsv1.Event)) kafkax.Message {
	t.Helper()
	object := ids.New[ids.CustomerPrefix]().String()
	e := &eventsv1.Event{
		Id: ids.New[ids.EventPrefix]().String(), Type: kind, TenantId: c.Tenant.String(), Livemode: c.Live(), ObjectId: object,
		ResourceVersion: 1, CreatedAt: timestamppb.Now(), Object: fmt.Appendf(nil, `{"id":%q,"email":"a@b.c"}`, object), PreviousAttributes: []byte(`{}`),
	}
	for _, f := range change {
		f(e)
	}
	raw, err := proto.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return kafkax.Message{Topic: "customers", Key: e.GetObjectId(), Value: raw}
}

type world struct {
	*consume.Events
	db  *pgtest.DB
	ctx context.Context // The context carries the caller.
}

func newWorld(t *testing.T) world {
	t.Helper()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	spec, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	return world{
		db: db, ctx: pgtest.Ctx(t, caller.Test),
		Events: &consume.Events{Types: app.AllTypes(), Intake: &app.Intake{
			DB: db.App, Worker: db.Worker, Queue: &store.Queue{Wake: func() {}}, Notifier: &app.Notifier{}, BatchBytes: 8 << 20, Now: time.Now,
			Contract: spec, Idempotency: &idemstore.Store{DB: db.App, Now: time.Now},
		}},
	}
}

// stored returns the bodies that the caller can read.
func (w world) stored(t *testing.T) []string {
	t.Helper()
	rows, err := w.db.App.Read(w.ctx).Query(w.ctx, `
		select convert_from(body, 'UTF8') from events where tenant_id = @tenant and livemode = @live order by id`, pg.Args{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEventsAreIngestedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := caller.FromContext(w.ctx)
	internal := message(t, c, "booking.expired", func(e *eventsv1.Event) { e.Internal = true })
	other := message(t, caller.Caller{Tenant: ids.New[ids.TenantPrefix](), Mode: caller.Live}, "customer.created")
	batch := []kafkax.Message{message(t, c, "customer.created"), internal, other, message(t, c, "booking.cancelled")}
	for range 2 {
		if err := w.HandleBatch(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		for _, m := range batch {
			if err := w.Handle(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := w.stored(t); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// A batch with an erasure is handled message by message, because the erasure has its own transactions.
func TestErasureLeavesTheBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := caller.FromContext(w.ctx)
	created := message(t, c, "customer.created")
	erased := message(t, c, "customer.erased", func(e *eventsv1.Event) { e.ObjectId, e.Internal = created.Key, true })
	if err := w.HandleBatch(t.Context(), []kafkax.Message{created, erased}); err == nil || errors.Is(err, kafkax.ErrPoison) {
		t.Errorf("got %v", err)
	}
	if got := w.stored(t); len(got) != 0 {
		t.Errorf("half of the batch: %v", got)
	}
	for _, m := range []kafkax.Message{created, erased, erased, created} {
		if err := w.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	got := w.stored(t)
	if len(got) != 1 || !strings.Contains(got[0], `"email":null`) || strings.Contains(got[0], "a@b.c") {
		t.Errorf("%v", got)
	}
}

// Leads, quotes and invoices also contain personal data. Each has its own erasure, which clears the fields that the contract marks.
func TestEachResourceOfAPersonIsErased(t *testing.T) {
	t.Parallel()
	for kind, id := range map[string]string{
		"lead":    ids.New[ids.LeadPrefix]().String(),
		"quote":   ids.New[ids.QuotePrefix]().String(),
		"invoice": ids.New[ids.InvoicePrefix]().String(),

		"payment_intent": "pi_3PaymentIntent",
	} {
		w := newWorld(t)
		c := caller.FromContext(w.ctx)
		public := kind + ".created"
		if kind == "payment_intent" {
			public = "payment.succeeded"
		}
		created := message(t, c, public, func(e *eventsv1.Event) {
			e.ObjectId, e.Object = id, []byte(`{"object":"`+kind+`","id":"`+id+`","metadata":{"who":"Ann"}}`)
		})
		erased := message(t, c, kind+".erased", func(e *eventsv1.Event) { e.ObjectId, e.Internal = id, true })
		for _, m := range []kafkax.Message{created, erased} {
			if err := w.Handle(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.stored(t); len(got) != 1 || strings.Contains(got[0], "Ann") || !strings.Contains(got[0], id) {
			t.Errorf("%s: %v", kind, got)
		}
	}
}

// An event that is redriven from the dead letters after an erasure is stored without personal data, whether it is handled in a
// batch or as a single message. The same id of another tenant or mode is another customer.
func TestRedriveAfterErasure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := caller.FromContext(w.ctx)
	live := c
	live.Mode = caller.Live
	first := message(t, c, "customer.created")
	same := func(e *eventsv1.Event) {
		e.ObjectId, e.PreviousAttributes = first.Key, []byte(`{"email":"old@b.c","version":1}`)
	}
	if err := w.Handle(t.Context(), message(t, c, "customer.erased", same, func(e *eventsv1.Event) { e.Internal = true })); err != nil {
		t.Fatal(err)
	}
	other := message(t, c, "customer.created", func(e *eventsv1.Event) { e.Object = []byte(`{"email":"kept@b.c"}`) })
	if err := w.HandleBatch(t.Context(), []kafkax.Message{other, first, message(t, live, "customer.updated", same)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Handle(t.Context(), message(t, c, "customer.updated", same)); err != nil {
		t.Fatal(err)
	}
	got := w.stored(t)
	all := strings.Join(got, "\n")
	if len(got) != 3 || strings.Contains(all, "a@b.c") || strings.Contains(all, "old@b.c") || !strings.Contains(all, "kept@b.c") ||
		strings.Count(all, `"email":null`) != 3 || !strings.Contains(all, `"previous_attributes":{"email":null,"version":1}`) {
		t.Errorf("%s", all)
	}
	w.ctx = caller.With(w.ctx, live)
	if got := w.stored(t); len(got) != 1 || !strings.Contains(got[0], "a@b.c") {
		t.Errorf("the other mode: %v", got)
	}
}

// An erasure waits for running intakes that cannot see it, and then finds the events that they wrote.
func TestErasureWaitsForIntake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := caller.FromContext(w.ctx)
	created := message(t, c, "customer.created")
	erased := message(t, c, "customer.erased", func(e *eventsv1.Event) { e.ObjectId, e.Internal = created.Key, true })
	withLockTimeout, err := pg.Open(t.Context(), w.db.AppURL, pg.Options{LockTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(withLockTimeout.Close)
	w.Intake.DB = withLockTimeout
	err = w.db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		if _, err := store.Erased(ctx, tx, nil); err != nil { // an intake that continues
			return err
		}
		if err := w.Handle(t.Context(), created); err != nil { // others do not wait for it
			t.Error(err)
		}
		if err := w.Handle(t.Context(), erased); pg.Code(err) != "55P03" || errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("the erasure did not wait: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Handle(t.Context(), erased); err != nil {
		t.Fatal(err)
	}
	if got := w.stored(t); len(got) != 1 || strings.Contains(got[0], "a@b.c") {
		t.Errorf("%v", got)
	}
}

func TestPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := caller.FromContext(w.ctx)
	future := ids.FromUUID[ids.EventPrefix]([16]byte{0x7f, 0xff, 0, 0, 0, 0, 0x70, 0, 0x80}).String()
	good := message(t, c, "customer.created")
	for name, m := range map[string]kafkax.Message{
		"no event":           {Topic: "customers", Value: []byte("nonsense")},
		"no tenant":          message(t, c, "customer.created", func(e *eventsv1.Event) { e.TenantId = "tn_1" }),
		"unknown type":       message(t, c, "customer.merged"),
		"erased no customer": message(t, c, "customer.erased", func(e *eventsv1.Event) { e.ObjectId, e.Internal = "bk_1", true }),
		"of the future":      message(t, c, "customer.created", func(e *eventsv1.Event) { e.Id = future }),
		"object is no JSON":  message(t, c, "customer.created", func(e *eventsv1.Event) { e.Object = []byte(`{`) }),
	} {
		if err := w.Handle(t.Context(), m); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.HandleBatch(t.Context(), []kafkax.Message{good, m}); err == nil {
			t.Errorf("%s: a batch with it was taken", name)
		}
	}
	if got := w.stored(t); len(got) != 0 {
		t.Errorf("%v", got)
	}
	// An unavailable database is not poison: the partition waits.
	w.db.Worker.Close()
	expired, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := w.Handle(expired, good); err == nil || errors.Is(err, kafkax.ErrPoison) {
		t.Errorf("got %v", err)
	}
}
