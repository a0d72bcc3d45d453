package consume_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/protobuf/proto"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/erasure"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/logs/internal/app"
	"holdfast.dev/services/logs/internal/consume"
	"holdfast.dev/services/logs/internal/domain"
	"holdfast.dev/services/logs/internal/store"
	"holdfast.dev/services/logs/migrations"
)

type world struct {
	*consume.Requests
	t       *testing.T
	db      *pgtest.DB
	metrics *prometheus.Registry
}

const maxRows = 20

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, db: pgtest.New(t, migrations.FS), metrics: prometheus.NewRegistry()}
	w.Requests = &consume.Requests{Intake: &app.Intake{
		Worker: w.db.Worker, Retention: 7 * 24 * time.Hour, MaxRows: maxRows, Now: time.Now, Metrics: app.NewMetrics(w.metrics),
	}, Erased: (&erasure.Marks{Worker: w.db.Worker}).Erased}
	return w
}

// entry returns an entry of the caller at a time.
func entry(c caller.Caller, at time.Time) *eventsv1.RequestLog {
	tenant := c.Tenant.UUID()
	u, first := ids.New[ids.RequestPrefix]().UUID(), ids.First[ids.RequestPrefix](at).UUID()
	copy(u[:6], first[:6])
	return &eventsv1.RequestLog{
		Id: ids.FromUUID[ids.RequestPrefix](u).String(), TenantUuid: tenant[:], Livemode: c.Live(), Status: 201, Method: "POST",
		Route: "/bookings", Path: "/bookings", CredentialId: "key_1", CredentialType: "api_key",
	}
}

func entries(ctx context.Context, n int) (list []*eventsv1.RequestLog) {
	for range n {
		list = append(list, entry(caller.FromContext(ctx), time.Now()))
	}
	return list
}

// message encodes each entry separately, as the gateway does, and joins them.
func message(t *testing.T, list ...*eventsv1.RequestLog) kafkax.Message {
	t.Helper()
	m := kafkax.Message{Topic: "requests"}
	for _, e := range list {
		raw, err := proto.Marshal(&eventsv1.RequestLogs{Entries: []*eventsv1.RequestLog{e}})
		if err != nil {
			t.Fatal(err)
		}
		m.Value = append(m.Value, raw...)
	}
	return m
}

func (w *world) handle(batch ...kafkax.Message) {
	w.t.Helper()
	if err := w.HandleBatch(w.t.Context(), batch); err != nil {
		w.t.Fatal(err)
	}
}

// stored returns the ids that the caller in ctx can read, newest first.
func (w *world) stored(ctx context.Context) (list []string) {
	w.t.Helper()
	rows, err := store.RequestLogs(ctx, w.db.App.Read(ctx), store.Filter{}, page.Request{Limit: 100}, time.Unix(1, 0))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range rows.Items {
		list = append(list, l.ID.String())
	}
	return list
}

// The requests of an erased tenant are not stored. Those of others in the same message are.
func TestRequestsOfAnErasedTenant(t *testing.T) {
	t.Parallel()
	w, gone, ctx := newWorld(t), pgtest.Ctx(t, caller.Live), pgtest.Ctx(t, caller.Live)
	if _, err := (&erasure.Eraser{Worker: w.db.Worker}).Step(t.Context(), caller.FromContext(gone).Tenant); err != nil {
		t.Fatal(err)
	}
	w.handle(message(t, append(entries(gone, 2), entries(ctx, 2)...)...))
	var all int64
	err := w.db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) (err error) {
		all, err = pg.One(ctx, tx, pgx.RowTo[int64], pgx.ErrNoRows, `select count(*) from request_logs`)
		return err
	})
	if got := w.stored(ctx); err != nil || len(got) != 2 || all != 2 {
		t.Errorf("%v of %d, %v", got, all, err)
	}
}

// A process that is killed after its commit and before the commit of its offset gets the messages again.
func TestMessagesThatArriveAgain(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Live)
	batch := []kafkax.Message{message(t, entries(ctx, 3)...), message(t, entries(ctx, 2)...)}
	for range 2 {
		w.handle(batch...)
		for _, m := range batch {
			if err := w.Handle(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := w.stored(ctx); len(got) != 5 {
		t.Errorf("%d rows", len(got))
	}
	if err := testutil.GatherAndCompare(w.metrics, strings.NewReader(fmt.Sprintf(counts, 0, 0, 15, 5)), "request_log_entries_total"); err != nil {
		t.Error(err)
	}
}

// One tenant's flood removes its own oldest rows, and none of another tenant or mode.
func TestFlood(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Live)
	c := caller.FromContext(ctx)
	neighbor, test := pgtest.Ctx(t, caller.Live), pgtest.CtxOf(t, c.Tenant, caller.Test)
	w.handle(message(t, entries(neighbor, 3)...), message(t, entries(test, 4)...))
	var newest []*eventsv1.RequestLog
	for i := range 2 * maxRows {
		newest = []*eventsv1.RequestLog{entry(c, time.Now().Add(time.Duration(i)*time.Minute)), entry(c, time.Now().Add(time.Duration(i)*time.Minute))}
		w.handle(message(t, newest...))
		if n := len(w.stored(ctx)); n > maxRows {
			t.Fatalf("%d rows, at most %d", n, maxRows)
		}
	}
	got := w.stored(ctx)
	if len(got) != maxRows || got[0] != newest[0].GetId() && got[0] != newest[1].GetId() {
		t.Errorf("%d rows, the newest is %s", len(got), got[0])
	}
	if n, m := len(w.stored(neighbor)), len(w.stored(test)); n != 3 || m != 4 {
		t.Errorf("the others have %d and %d rows", n, m)
	}
}

// A batch can have more rows than one statement inserts.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Live)
	w.Intake.MaxRows = 2 * store.MaxInsert
	w.handle(message(t, entries(ctx, store.MaxInsert+1)...))
	w.handle(message(t, entries(ctx, 1)...))
	rows, err := store.RequestLogs(ctx, w.db.App.Read(ctx), store.Filter{}, page.Request{Limit: 3 * store.MaxInsert}, time.Unix(1, 0))
	if n := len(rows.Items); err != nil || n != store.MaxInsert+2 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// Entries of other times than the log has are skipped. They do not block those that it has.
func TestTimesOutOfRange(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Live)
	c, now := caller.FromContext(ctx), time.Now()
	good := entry(c, now)
	w.handle(message(t, entry(c, now.Add(-8*24*time.Hour)), good, entry(c, now.Add(domain.MaxAhead+time.Minute)), entry(c, now.Add(domain.MaxAhead-time.Minute))))
	if got := w.stored(ctx); len(got) != 2 || got[1] != good.GetId() {
		t.Errorf("%v", got)
	}
	if err := testutil.GatherAndCompare(w.metrics, strings.NewReader(fmt.Sprintf(counts, 0, 2, 0, 2)), "request_log_entries_total"); err != nil {
		t.Error(err)
	}
}

// counts is the metric with the results deleted, out_of_range, repeated and stored.
const counts = `# HELP request_log_entries_total Entries of the request log, by result: stored, repeated, out_of_range, or deleted because the tenant has too many.
# TYPE request_log_entries_total counter
request_log_entries_total{result="deleted"} %d
request_log_entries_total{result="out_of_range"} %d
request_log_entries_total{result="repeated"} %d
request_log_entries_total{result="stored"} %d
`

// A text that PostgreSQL does not store does not block its partition.
func TestTextsWithNUL(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Live)
	e := entries(ctx, 1)[0]
	const bad = "a\x00b"
	e.Method, e.Route, e.Path, e.QueryNames, e.Code, e.Param, e.CredentialId, e.CredentialType = bad, bad, bad, []string{bad}, bad, bad, bad, bad
	e.ObjectId, e.ClientNetwork, e.UserAgent, e.SdkVersion = bad, bad, bad, bad
	w.handle(message(t, e))
	if got := w.stored(ctx); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// An unreadable message goes to the dead letters. A database that does not respond blocks the partition instead.
func TestPoison(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Live)
	good := message(t, entries(ctx, 1)...)
	noTenant, noID := entries(ctx, 1)[0], entries(ctx, 1)[0]
	noTenant.TenantUuid, noID.Id = []byte("tn_1"), "evt_1"
	for name, m := range map[string]kafkax.Message{
		"no message": {Value: []byte("nonsense")}, "no tenant": message(t, noTenant), "no id": message(t, noID),
	} {
		if err := w.Handle(t.Context(), m); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.HandleBatch(t.Context(), []kafkax.Message{good, m}); err == nil {
			t.Errorf("%s: a batch with it was taken", name)
		}
	}
	if got := w.stored(ctx); len(got) != 0 {
		t.Errorf("%v", got)
	}
	w.handle(kafkax.Message{})
	w.db.Worker.Close()
	if err := w.Handle(t.Context(), good); err == nil || errors.Is(err, kafkax.ErrPoison) {
		t.Errorf("got %v", err)
	}
}
