package consume_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/patch"
	"holdfast.dev/proto"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/consume"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// TestEachTopicHasAHandler checks that exactly the topics that proto/services.yaml lets the service read have a handler.
func TestEachTopicHasAHandler(t *testing.T) {
	t.Parallel()
	listed, _ := proto.ServiceNamed("identity")
	reads := slices.Sorted(slices.Values(listed.Reads))
	if got := slices.Sorted(maps.Keys(consume.New(nil).Topics)); len(reads) == 0 || !slices.Equal(got, reads) {
		t.Errorf("handlers of %v, and proto/services.yaml lists %v", got, reads)
	}
}

// written is an event of customers or bookings.
func written(t testing.TB, topic string, tenant ids.Tenant, change ...func(*eventsv1.Event)) kafkax.Message {
	t.Helper()
	m := event(t, tenant, append([]func(*eventsv1.Event){func(e *eventsv1.Event) {
		e.Type, e.ObjectId, e.ResourceVersion, e.Internal = "customer.updated", "cu_1", 7, false
		e.Actor, e.RequestId = "key_1", "req_1"
		e.Object = []byte(`{"id":"cu_1","first_name":"Grace","email":"grace@example.com"}`)
		e.PreviousAttributes = []byte(`{"last_name":"Hopper","email":"old@example.com"}`)
	}}, change...)...)
	m.Topic = topic
	return m
}

// TestChangesAreAudited checks that the record of a change names who made it and which fields it changed. No value is stored
// anywhere in the database.
func TestChangesAreAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	created := func(e *eventsv1.Event) {
		e.Type, e.ObjectId, e.ResourceVersion, e.PreviousAttributes = "lead.created", "ld_1", 1, []byte(`{}`)
	}
	own := func(e *eventsv1.Event) {
		e.Type, e.ObjectId, e.Actor, e.RequestId, e.Livemode, e.PreviousAttributes = "booking.updated", "bk_1", "", "", true, nil
	}
	rotated := func(e *eventsv1.Event) {
		e.Type, e.ObjectId, e.ResourceVersion, e.Object, e.PreviousAttributes = "webhook_endpoint.secret_rotated", endpoint, 3, nil, []byte(`{"headers":null}`)
	}
	batch := []kafkax.Message{
		written(t, "customers", tenant.ID), written(t, "customers", tenant.ID, created), written(t, "bookings", tenant.ID, own), event(t, tenant.ID),
		written(t, "webhooks", tenant.ID, rotated),
	}
	if err := w.HandleBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`false key_1 customer.updated cu_1 customers {"fields": ["email", "last_name"], "version": 7, "request_id": "req_1"}`,
		`false key_1 lead.created ld_1 customers {"fields": [], "version": 1, "request_id": "req_1"}`,
		`true svc:bookings booking.updated bk_1 bookings {"fields": [], "version": 7}`,
		`false svc:webhooks webhook_endpoint.disabled ` + endpoint + ` webhooks ` +
			`{"id": "` + endpoint + `", "status": "disabled", "disabled_reason": "gone", "consecutive_failures": 1}`,
		`false key_1 webhook_endpoint.secret_rotated ` + endpoint + ` webhooks {"fields": ["headers"], "version": 3, "request_id": "req_1"}`,
	}
	var got []string
	for _, r := range w.log(t, tenant) {
		got = append(got, fmt.Sprint(r.Livemode, " ", r.Actor, " ", r.Action, " ", r.Object, " ", r.Source, " ", string(r.After)))
		if r.Before != nil || !r.At.Equal(at.Truncate(time.Microsecond)) {
			t.Errorf("%+v", r)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("records\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, value := range []string{"Grace", "grace@", "Hopper", "old@", "example.com"} {
		if n := w.count(t, `select count(*) from audit_log l where l::text ilike '%' || $1 || '%'`, value); n != 0 {
			t.Errorf("%d records hold %q", n, value)
		}
	}
}

// count runs "select count(*) …" as the owner.
func (w *world) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), w.db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }() // it is called repeatedly until something has happened
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *world) owner(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), w.db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// TestRedeliveryCreatesNoRecord checks that an event creates one record: twice in a batch, in two batches, and alone in parallel
// with a batch.
func TestRedeliveryCreatesNoRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, other := w.tenant(t), w.tenant(t)
	first, second, foreign := written(t, "customers", tenant.ID), written(t, "bookings", tenant.ID), written(t, "bookings", other.ID)
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			err := w.HandleBatch(t.Context(), []kafkax.Message{first, foreign, second, first})
			if i%2 == 0 {
				err = errors.Join(err, w.Handle(t.Context(), second), w.HandleBatch(t.Context(), []kafkax.Message{second, foreign}))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if a, b, n := len(w.log(t, tenant)), len(w.log(t, other)), w.received(t); a != 2 || b != 1 || n != 3 {
		t.Errorf("%d and %d records of %d events", a, b, n)
	}
}

// TestPoisonInABatch checks that a poison message does not prevent the records of the other messages in its batch.
func TestPoisonInABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	for name, bad := range map[string]kafkax.Message{
		"unknown tenant": written(t, "customers", ids.New[ids.TenantPrefix]()),
		"no JSON":        written(t, "customers", tenant.ID, func(e *eventsv1.Event) { e.PreviousAttributes = []byte(`[`) }),
		"no object":      written(t, "customers", tenant.ID, func(e *eventsv1.Event) { e.ObjectId = "" }),
		"a NUL":          written(t, "customers", tenant.ID, func(e *eventsv1.Event) { e.ObjectId = "cu_\x00" }),
		"another topic":  {Topic: "identity", Value: written(t, "customers", tenant.ID).Value},
	} {
		before := len(w.log(t, tenant))
		batch := []kafkax.Message{written(t, "customers", tenant.ID), bad, written(t, "customers", tenant.ID)}
		if err := w.HandleBatch(t.Context(), batch); err == nil {
			t.Errorf("%s: the batch is taken", name)
		}
		if n := len(w.log(t, tenant)); n != before {
			t.Errorf("%s: %d records of a batch that failed", name, n-before)
		}
		for i, m := range batch { // like the consumer in this case
			if err := w.Handle(t.Context(), m); (err != nil) != (i == 1) || errors.Is(err, kafkax.ErrPoison) != (i == 1) {
				t.Errorf("%s: message %d: %v", name, i, err)
			}
		}
		if n := len(w.log(t, tenant)); n != before+2 {
			t.Errorf("%s: %d records, want 2", name, n-before)
		}
	}
}

// TestABatchIsAllOrNone checks that a batch that is canceled, or whose connection is closed, during its write stores nothing. The
// next attempt writes all records.
func TestABatchIsAllOrNone(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(w *world, t *testing.T, cancel func()){
		"cancelled": func(_ *world, _ *testing.T, cancel func()) { cancel() },
		"killed": func(w *world, t *testing.T, _ func()) {
			w.count(t, `select count(pg_terminate_backend(pid)) from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tenants := []domain.Tenant{w.tenant(t), w.tenant(t)}
			var batch []kafkax.Message
			for i := range 50 {
				batch = append(batch, written(t, "customers", tenants[i%2].ID))
			}
			hold, err := w.owner(t).Begin(t.Context())
			if err == nil {
				_, err = hold.Exec(t.Context(), `lock table audit_log in share mode`)
			}
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- w.HandleBatch(ctx, batch) }()
			eventually(t, "a batch that waits", func() bool {
				return w.count(t, `select count(*) from pg_locks where not granted and relation = 'audit_log'::regclass
					and database = (select oid from pg_database where datname = current_database())`) == 1
			})
			stop(w, t, cancel)
			if err := <-done; err == nil || errors.Is(err, kafkax.ErrPoison) {
				t.Errorf("got %v", err)
			}
			if err := hold.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, want := range []int{0, 25} {
				for _, tenant := range tenants {
					if n := len(w.log(t, tenant)); n != want {
						t.Errorf("%d records, want %d", n, want)
					}
				}
				if n := w.received(t); n != 2*want {
					t.Errorf("%d events received, want %d", n, 2*want)
				}
				if err := w.HandleBatch(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for ends := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(ends) {
			t.Fatal("no ", what)
		}
	}
}

// TestABatchLocksHeadsInOrder checks that a batch locks heads by ascending tenant. While it waits for the first one, it holds no
// other lock, regardless of the order of its messages.
func TestABatchLocksHeadsInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenants := []domain.Tenant{w.tenant(t), w.tenant(t), w.tenant(t)}
	slices.SortFunc(tenants, func(a, b domain.Tenant) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	hold, err := w.owner(t).Begin(t.Context())
	if err == nil {
		_, err = hold.Exec(t.Context(), `select from audit_heads where tenant_id = $1 for update`, tenants[0].ID.UUID())
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- w.HandleBatch(t.Context(), []kafkax.Message{
			written(t, "customers", tenants[2].ID), written(t, "customers", tenants[1].ID), written(t, "customers", tenants[0].ID),
		})
	}()
	eventually(t, "a batch that waits", func() bool {
		return w.count(t, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == 1
	})
	if n := w.count(t, `select count(*) from (select from audit_heads where tenant_id <> $1 for update skip locked) free`, tenants[0].ID.UUID()); n != 2 {
		t.Errorf("%d of 2 other heads are free", n)
	}
	if err := hold.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, tenant := range tenants {
		if n := len(w.log(t, tenant)); n != 1 {
			t.Errorf("%d records", n)
		}
	}
}

// TestParallelBatches checks that batches of many partitions with the same tenants in any order succeed during identity's own
// writes, and that each chain is valid.
func TestParallelBatches(t *testing.T) {
	t.Parallel()
	const partitions, batches, size = 8, 5, 40
	w := newWorld(t)
	var tenants []domain.Tenant
	for range 6 {
		tenants = append(tenants, w.tenant(t))
	}
	var all sync.WaitGroup
	for range partitions {
		all.Go(func() {
			for range batches {
				list := make([]kafkax.Message, size)
				for i := range list {
					list[i] = written(t, "bookings", tenants[rand.N(len(tenants))].ID)
				}
				if err := w.HandleBatch(t.Context(), list); err != nil {
					t.Error(err)
				}
			}
		})
	}
	by := domain.Origin{Actor: "cli"}
	for i, tenant := range tenants {
		all.Go(func() {
			_, _, err := w.CreateKey(t.Context(), by, app.NewKey{Tenant: tenant.ID, Mode: "live", Name: "k", Scopes: "all"})
			_, _, failed := w.UpdateTenant(t.Context(), by, tenant.ID, domain.TenantPatch{Name: patch.Value(fmt.Sprint("N", i))})
			if err := errors.Join(err, failed); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	total := 0
	for _, tenant := range tenants {
		total += w.verified(t, tenant) - 3 // creation, update, and its key
	}
	if want := partitions * batches * size; total != want {
		t.Errorf("%d records, want %d", total, want)
	}
}

// verified returns the length of a valid chain.
func (w *world) verified(t *testing.T, tenant domain.Tenant) int {
	t.Helper()
	verdicts, err := w.VerifyAudit(t.Context(), []domain.Tenant{tenant}, nil)
	if err != nil || verdicts[0].Broken != "" {
		t.Fatalf("%+v, %v", verdicts, err)
	}
	return int(verdicts[0].Records)
}

// asInProduction sets ids of realistic length in an event.
func asInProduction(e *eventsv1.Event) {
	e.Type, e.ObjectId = "booking.updated", ids.New[ids.BookingPrefix]().String()
	e.Actor, e.RequestId = "key"+e.GetObjectId()[2:], ids.New[ids.RequestPrefix]().String()
	e.PreviousAttributes = []byte(`{"status":"pending","confirmed_at":null,"amount_paid":0}`)
}

// BenchmarkHandleBatch measures the records of batches through the handler, for one tenant and for many.
func BenchmarkHandleBatch(b *testing.B) {
	const size = 200
	for _, n := range []int{1, 50} {
		b.Run(fmt.Sprintf("tenants=%d", n), func(b *testing.B) {
			w := newWorld(b)
			var tenants []domain.Tenant
			for range n {
				tenants = append(tenants, w.tenant(b))
			}
			var batches [][]kafkax.Message
			for range b.N {
				list := make([]kafkax.Message, size)
				for i := range list {
					list[i] = written(b, "bookings", tenants[i%n].ID, asInProduction)
				}
				batches = append(batches, list)
			}
			b.ResetTimer()
			for _, list := range batches {
				if err := w.HandleBatch(b.Context(), list); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "records/s")
			for _, table := range []string{"audit_log", "inbox"} {
				var bytes int64
				if err := w.owner(b).QueryRow(b.Context(), `select pg_total_relation_size($1)`, table).Scan(&bytes); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(bytes)/float64(b.N*size), "B/"+table)
			}
		})
	}
}

// TestGatewayAccounts checks that the tenant contains the payment gateway that is connected in the mode, regardless of the order of
// the events, and that each change is recorded.
func TestGatewayAccounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, other := w.tenant(t), w.tenant(t)
	account := func(tenant ids.Tenant, version int64, connected, live bool, events ...string) kafkax.Message {
		return written(t, "payments", tenant, func(e *eventsv1.Event) {
			e.Type, e.ObjectId, e.ResourceVersion, e.Internal, e.Actor, e.Livemode = domain.GatewayAccountUpdated, "ga_1", version, true, "cli", live
			e.Object = fmt.Appendf(nil, `{"id":"ga_1","provider":"stripe","connected":%t}`, connected)
			if len(events) > 0 {
				e.Object = fmt.Appendf(nil, `{"id":"ga_1","provider":"stripe","connected":%t,"events":%q}`, connected, events[0])
			}
		})
	}
	shown := func() (list []string) {
		for _, tenant := range []ids.Tenant{tenant.ID, other.ID} {
			for _, mode := range []caller.Mode{caller.Test, caller.Live} {
				ctx := caller.With(t.Context(), caller.Service("identity", tenant, mode))
				got, err := store.ShownTenant(ctx, w.db.App.Read(ctx))
				if err != nil {
					t.Fatal(err)
				}
				provider := "none"
				if got.GatewayProvider != nil {
					provider = *got.GatewayProvider + " " + *got.GatewayEvents
				}
				list = append(list, provider)
			}
		}
		return list
	}
	for _, step := range []struct {
		batch []kafkax.Message
		want  []string
	}{
		{nil, []string{"none", "none", "none", "none"}},
		{[]kafkax.Message{account(tenant.ID, 1, true, false)}, []string{"stripe ok", "none", "none", "none"}},
		{[]kafkax.Message{account(tenant.ID, 3, false, false), account(tenant.ID, 2, true, false), account(other.ID, 1, true, true)}, []string{"none", "none", "none", "stripe ok"}},
		{[]kafkax.Message{account(tenant.ID, 2, true, false)}, []string{"none", "none", "none", "stripe ok"}},
		{[]kafkax.Message{account(tenant.ID, 5, true, false, "late"), account(tenant.ID, 4, true, false, "missing")}, []string{"stripe late", "none", "none", "stripe ok"}},
	} {
		if err := w.HandleBatch(t.Context(), step.batch); err != nil {
			t.Fatal(err)
		}
		if got := shown(); !slices.Equal(got, step.want) {
			t.Errorf("%v, want %v", got, step.want)
		}
	}
	if n := len(w.log(t, tenant)); n != 6 {
		t.Errorf("%d records", n)
	}
	wrong := written(t, "payments", tenant.ID, func(e *eventsv1.Event) {
		e.Type, e.ObjectId, e.Object = domain.GatewayAccountUpdated, "ga_1", []byte(`{"id":"ga_2","provider":"stripe"}`)
	})
	if err := w.Handle(t.Context(), wrong); !errors.Is(err, kafkax.ErrPoison) {
		t.Errorf("got %v", err)
	}
}
