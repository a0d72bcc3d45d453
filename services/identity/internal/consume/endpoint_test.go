package consume_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/consume"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/migrations"
)

const endpoint = "we_01m7zd48z8f1svkv8g7bj63mam"

// world contains identity's use cases on the test's own database, and the handler.
type world struct {
	*app.App
	*consume.Audit
	db *pgtest.DB
}

// noRedis replaces a Redis that accepts everything.
type noRedis struct{}

// Publish implements app.Publisher.
func (noRedis) Publish(context.Context, []domain.Invalidation) error { return nil }

func newWorld(t testing.TB) *world {
	t.Helper()
	db := pgtest.New(t, migrations.FS)
	if test, ok := t.(*testing.T); ok {
		pgtest.Scoped(test, db)
	}
	identity := &app.App{DB: db.App, Worker: db.Worker, Redis: noRedis{}, Scopes: []string{"read:bookings"}, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	return &world{App: identity, Audit: consume.New(identity), db: db}
}

func (w *world) tenant(t testing.TB) domain.Tenant {
	t.Helper()
	by := domain.Origin{Actor: "cli", Source: "cli:tester@here"}
	created, err := w.CreateTenant(t.Context(), by, "s"+strings.ToLower(ids.New[ids.RequestPrefix]().String()[4:]), domain.TenantPatch{
		Name: patch.Value("Demo"), Timezone: patch.Value("UTC"), Currency: patch.Value("USD"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// log returns the tenant's audit log after its creation. The chain must be valid.
func (w *world) log(t *testing.T, tenant domain.Tenant) (records []domain.Record) {
	t.Helper()
	verdicts, err := w.VerifyAudit(t.Context(), []domain.Tenant{tenant}, nil)
	if err != nil || verdicts[0].Broken != "" {
		t.Fatalf("%+v, %v", verdicts, err)
	}
	err = w.db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		records, err = store.Audit(ctx, tx, tenant.ID, 1, 100)
		return err
	})
	if err != nil || int64(len(records)) != verdicts[0].Records-1 {
		t.Fatalf("%d records of %d: %v", len(records), verdicts[0].Records, err)
	}
	return records
}

// received returns the number of events in the inbox.
func (w *world) received(t *testing.T) (n int) {
	t.Helper()
	err := w.db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		rows, err := tx.Query(ctx, `select count(*) from inbox`)
		if err != nil {
			return err
		}
		n, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var at = time.Date(2030, 1, 2, 3, 4, 5, 678_901_234, time.UTC)

// event returns an event of the webhooks service. change edits it first.
func event(t testing.TB, tenant ids.Tenant, change ...func(*eventsv1.Event)) kafkax.Message {
	t.Helper()
	e := &eventsv1.Event{
		Id: ids.New[ids.EventPrefix]().String(), Type: domain.EndpointDisabled, TenantId: tenant.String(),
		ObjectId: endpoint, ResourceVersion: 3, CreatedAt: timestamppb.New(at), Internal: true,
		Object: fmt.Appendf(nil, `{"id":%q,"status":"disabled","disabled_reason":"gone","consecutive_failures":1}`, endpoint),
	}
	for _, c := range change {
		c(e)
	}
	raw, err := proto.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return kafkax.Message{Topic: "webhooks", Key: e.GetObjectId(), Value: raw}
}

func failing(e *eventsv1.Event) {
	e.Type, e.Livemode = domain.EndpointFailing, true
	e.Object = fmt.Appendf(nil, `{"consecutive_failures":10,"disabled_reason":null,"status":"enabled","id":%q}`, endpoint)
}

func TestEndpointHealthIsAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, other := w.tenant(t), w.tenant(t)
	handle := func(m kafkax.Message) {
		t.Helper()
		if err := w.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	first, second := event(t, tenant.ID, failing), event(t, tenant.ID)
	handle(first)
	handle(first)
	handle(second)
	handle(event(t, tenant.ID, func(e *eventsv1.Event) { e.Type, e.Object = "webhook_endpoint.unknown", nil })) // not audited
	handle(first)
	handle(second)
	records := w.log(t, tenant)
	if len(records) != 2 || w.received(t) != 2 {
		t.Fatalf("%d records, %d events received: %+v", len(records), w.received(t), records)
	}
	for i, want := range []struct {
		action string
		live   bool
		after  string
	}{
		{"webhook_endpoint.failing", true, `{"id": "` + endpoint + `", "status": "enabled", "disabled_reason": null, "consecutive_failures": 10}`},
		{"webhook_endpoint.disabled", false, `{"id": "` + endpoint + `", "status": "disabled", "disabled_reason": "gone", "consecutive_failures": 1}`},
	} {
		r := records[i]
		if r.Action != want.action || r.Livemode != want.live || string(r.After) != want.after || r.Before != nil ||
			r.Actor != "svc:webhooks" || r.Source != "webhooks" || r.Object != endpoint || !r.At.Equal(at.Truncate(time.Microsecond)) {
			t.Errorf("%+v\nafter %s, want %+v", r, r.After, want)
		}
	}
	if got := w.log(t, other); len(got) != 0 {
		t.Errorf("another tenant's log: %+v", got)
	}
	// The chain continues after these records.
	if _, _, err := w.CreateKey(t.Context(), domain.Origin{Actor: "cli"}, app.NewKey{Tenant: tenant.ID, Mode: "live", Name: "a key", Scopes: "all"}); err != nil {
		t.Fatal(err)
	}
	if records = w.log(t, tenant); len(records) != 3 || records[2].Action != domain.KeyCreated {
		t.Errorf("%+v", records)
	}
}

// TestTwoProcessesReceiveTheSameEvent checks that two processes can receive the same message when a partition is reassigned.
func TestTwoProcessesReceiveTheSameEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	m := event(t, tenant.ID)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := w.Handle(t.Context(), m); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if records := w.log(t, tenant); len(records) != 1 {
		t.Errorf("%d records", len(records))
	}
}

func TestPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	object := func(raw string) func(*eventsv1.Event) { return func(e *eventsv1.Event) { e.Object = []byte(raw) } }
	for name, m := range map[string]kafkax.Message{
		"no event":           {Topic: "webhooks", Value: []byte("nonsense")},
		"no topic":           {Value: event(t, tenant.ID).Value},
		"no id":              event(t, tenant.ID, func(e *eventsv1.Event) { e.Id = "evt_1" }),
		"no tenant":          event(t, ids.Tenant{}),
		"unknown tenant":     event(t, ids.New[ids.TenantPrefix]()),
		"no time":            event(t, tenant.ID, func(e *eventsv1.Event) { e.CreatedAt = nil }),
		"no JSON":            event(t, tenant.ID, object(`{`)),
		"no object":          event(t, tenant.ID, object(``)),
		"another object":     event(t, tenant.ID, object(`{"id":"we_1"}`)),
		"an odd number":      event(t, tenant.ID, object(`{"id":"`+endpoint+`","consecutive_failures":1e1}`)),
		"what jsonb has not": event(t, tenant.ID, object(`{"id":"`+endpoint+`","status":"\u0000"}`)),
	} {
		if err := w.Handle(t.Context(), m); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if records := w.log(t, tenant); len(records) != 0 || w.received(t) != 0 {
		t.Errorf("%d events received, %+v", w.received(t), records)
	}
	// An unavailable database is not poison: the partition waits.
	w.db.Worker.Close()
	ended, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := w.Handle(ended, event(t, tenant.ID)); err == nil || errors.Is(err, kafkax.ErrPoison) {
		t.Errorf("got %v", err)
	}
}
