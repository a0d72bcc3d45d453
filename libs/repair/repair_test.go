package repair_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/repair"
)

const schema = `-- +goose Up
create table things (tenant_id uuid not null, livemode boolean not null, id uuid not null, version bigint not null, updated_at timestamptz not null,
	primary key (tenant_id, livemode, id));
create table counters (tenant_id uuid primary key, next bigint not null);
create table numbers (tenant_id uuid not null, livemode boolean not null, next bigint not null, primary key (tenant_id, livemode));
create table copies (tenant_id uuid not null, livemode boolean not null, id uuid not null, version bigint not null);
`

const own = `select tenant_id, livemode, id::text as key, version, updated_at as changed_at, true as logged, '{holder}'::text[] as holders,
	case when id >= @first then '{booking.created}' else '{}' end::text[] as events from things`

// world is the database of an owner of bookings, and what others hold.
type world struct {
	t         *testing.T
	url       string
	conn      *pgx.Conn
	tenant    ids.Tenant
	since     time.Time
	published []string // "<version> <events>" by the order of publishing
	service   repair.Service
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db := pgtest.New(t, fstest.MapFS{"00001_things.sql": {Data: []byte(schema)}})
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	w := &world{t: t, url: db.OwnerURL, conn: conn, tenant: ids.New[ids.TenantPrefix](), since: time.Now().Add(-time.Hour)}
	w.service = repair.Service{
		Name: "owner", Copies: `select 'bk', tenant_id, livemode, id::text, version, '', '' from copies`,
		Kinds: []repair.Kind{{Prefix: "bk", Own: own, Publish: w.publish}},
		Fixes: []repair.Fix{{What: "counters raised", SQL: `
			update counters c set next = n.top + 1 from (select max(substring(number from '[0-9]+$')::bigint) as top from repair_copies where number <> '') n
			where c.next <= n.top returning 'counter'`}},
		Forget: map[string]func(context.Context, pg.Tx, string) error{"bk": func(ctx context.Context, tx pg.Tx, id string) error {
			_, key := ids.Stored(id)
			_, err := tx.Exec(ctx, `delete from copies where tenant_id = @tenant and livemode = @live and id = @key::uuid`, pg.Args{"key": key})
			return err
		}},
		Counters: map[string]string{"bookings": "numbers"},
	}
	return w
}

func (w *world) publish(ctx context.Context, tx pg.Tx, key string, version int64, events []string) error {
	_, err := tx.Exec(ctx, `update things set version = @version where tenant_id = @tenant and livemode = @live and id = @key::uuid`,
		pg.Args{"key": key, "version": version})
	w.published = append(w.published, fmt.Sprint(version, events))
	return err
}

// thing writes a row that changed at a time, and returns the id.
func (w *world) thing(version int64, changed time.Time) ids.Booking {
	w.t.Helper()
	id := ids.First[ids.BookingPrefix](changed)
	raw, random := id.UUID(), ids.New[ids.BookingPrefix]().UUID()
	copy(raw[8:], random[8:])
	id = ids.FromUUID[ids.BookingPrefix](raw)
	w.exec(`insert into things values ($1, true, $2, $3, $4)`, w.tenant.UUID(), raw, version, changed)
	return id
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.conn.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

// copies returns the lines of two holders: a service, and the log of events.
func (w *world) lines(list ...repair.Copy) string {
	w.t.Helper()
	var out strings.Builder
	for _, c := range list {
		c.Tenant, c.Livemode = w.tenant, true
		if err := json.NewEncoder(&out).Encode(c); err != nil {
			w.t.Fatal(err)
		}
	}
	return out.String()
}

func held(id ids.Booking, version int64) repair.Copy {
	return repair.Copy{Holder: "holder", ID: id.String(), Version: version}
}

func logged(id ids.Booking, version int64, event, number string) repair.Copy {
	return repair.Copy{Holder: "log", ID: id.String(), Version: version, Event: event, Number: number}
}

func (w *world) do(check bool, in string) (out string, err error) {
	w.t.Helper()
	var lost, progress bytes.Buffer
	err = w.service.Do(w.t.Context(), repair.Run{
		URL: w.url, Since: w.since, Check: check, In: strings.NewReader(in), Out: &lost, Progress: &progress,
	})
	if testing.Verbose() {
		w.t.Log(progress.String())
	}
	return lost.String(), err
}

// TestRepair checks each way in which copies can differ: the owner publishes what is older or missing elsewhere, and raises the version
// above a newer copy. A check finds the same and changes nothing. Equal copies, and old objects that a holder never had, stay.
func TestRepair(t *testing.T) {
	t.Parallel()
	now, old := time.Now(), time.Now().Add(-48*time.Hour)
	for name, tc := range map[string]struct {
		version int64
		changed time.Time
		held    func(id ids.Booking) []repair.Copy
		want    []string
	}{
		"equal": {3, now, func(id ids.Booking) []repair.Copy {
			return []repair.Copy{held(id, 3), logged(id, 1, "booking.created", ""), logged(id, 3, "booking.updated", "")}
		}, nil},
		"an older copy":      {3, old, func(id ids.Booking) []repair.Copy { return []repair.Copy{held(id, 2)} }, []string{"3 []"}},
		"a newer copy":       {3, old, func(id ids.Booking) []repair.Copy { return []repair.Copy{held(id, 7)} }, []string{"8 []"}},
		"two copies":         {3, old, func(id ids.Booking) []repair.Copy { return []repair.Copy{held(id, 2), held(id, 7)} }, []string{"8 []"}},
		"an unknown version": {3, old, func(id ids.Booking) []repair.Copy { return []repair.Copy{held(id, 0)} }, nil},
		"missing, recent":    {2, now, func(id ids.Booking) []repair.Copy { return []repair.Copy{logged(id, 2, "booking.created", "")} }, []string{"2 []"}},
		"missing, old":       {2, old, func(ids.Booking) []repair.Copy { return nil }, nil},
		"no event":           {1, now, func(id ids.Booking) []repair.Copy { return []repair.Copy{held(id, 1)} }, []string{"1 [booking.created]"}},
		"an older event": {2, now, func(id ids.Booking) []repair.Copy {
			return []repair.Copy{held(id, 2), logged(id, 1, "booking.created", "")}
		}, []string{"2 []"}},
		"a newer event": {1, now, func(id ids.Booking) []repair.Copy {
			return []repair.Copy{held(id, 1), logged(id, 4, "booking.created", "")}
		}, []string{"5 []"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			in := w.lines(tc.held(w.thing(tc.version, tc.changed))...)
			if _, err := w.do(true, in); (len(tc.want) > 0) != errors.Is(err, repair.ErrDiffers) || err != nil && len(tc.want) == 0 || len(w.published) > 0 {
				t.Errorf("check: %v, published %v", err, w.published)
			}
			if _, err := w.do(false, in); err != nil || !slices.Equal(w.published, tc.want) {
				t.Errorf("%v, published %q, want %q", err, w.published, tc.want)
			}
		})
	}
}

// TestLost checks that an object that only others know is reported, with the services that hold it, and that they forget it. An object
// in the log alone is reported but is no difference.
func TestLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gone, past := ids.New[ids.BookingPrefix](), ids.New[ids.BookingPrefix]()
	w.exec(`insert into copies values ($1, true, $2, 4)`, w.tenant.UUID(), gone.UUID())
	var copies bytes.Buffer
	if err := repair.WriteCopies(t.Context(), w.url, "holder", w.service.Copies, w.since, &copies); err != nil || copies.String() != w.lines(held(gone, 4)) {
		t.Fatalf("%v\n%swant\n%s", err, copies.String(), w.lines(held(gone, 4)))
	}
	in := copies.String() + w.lines(logged(gone, 5, "booking.updated", "B-000009"), logged(past, 1, "booking.created", ""))
	lost, err := w.do(true, in)
	if !errors.Is(err, repair.ErrDiffers) || strings.Count(lost, "\n") != 2 ||
		!strings.Contains(lost, fmt.Sprintf(`"id":%q,"version":5,"holders":["holder"],"number":"B-000009"`, gone)) ||
		!strings.Contains(lost, fmt.Sprintf(`"id":%q,"version":1,"holders":[]`, past)) {
		t.Errorf("%v\n%s", err, lost)
	}
	for range 2 {
		if err := w.service.ForgetLost(t.Context(), repair.Run{URL: w.url, In: strings.NewReader(lost), Progress: &bytes.Buffer{}}); err != nil {
			t.Fatal(err)
		}
	}
	copies.Reset()
	if err := repair.WriteCopies(t.Context(), w.url, "holder", w.service.Copies, w.since, &copies); err != nil || copies.Len() > 0 {
		t.Errorf("%v, still %s", err, copies.String())
	}
	if _, err := w.do(true, w.lines(logged(past, 1, "booking.created", ""))); err != nil {
		t.Errorf("only the log knows it: %v", err)
	}
}

// TestFix checks that a check counts the rows that a fix would change and rolls it back, and that a repeated fix changes nothing.
func TestFix(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`insert into counters values ($1, 3)`, w.tenant.UUID())
	in := w.lines(logged(w.thing(1, time.Now().Add(-48*time.Hour)), 1, "booking.created", "B-000041"))
	for _, step := range []struct {
		check   bool
		next    int64
		differs bool
	}{{true, 3, true}, {false, 42, false}, {true, 42, false}} {
		_, err := w.do(step.check, in)
		var next int64
		if failed := w.conn.QueryRow(t.Context(), `select next from counters`).Scan(&next); failed != nil {
			t.Fatal(failed)
		}
		if errors.Is(err, repair.ErrDiffers) != step.differs || err != nil && !step.differs || next != step.next {
			t.Errorf("%+v: %v, next %d", step, err, next)
		}
	}
}

// TestRepairContinues checks that each object has a transaction of its own: a repair that stops halfway keeps what it has done.
func TestRepairContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := time.Now().Add(-48 * time.Hour)
	in := w.lines(held(w.thing(1, old), 5), held(w.thing(1, old), 5))
	failed := errors.New("stopped")
	w.service.Kinds[0].Publish = func(ctx context.Context, tx pg.Tx, key string, version int64, events []string) error {
		if len(w.published) == 1 {
			return failed
		}
		return w.publish(ctx, tx, key, version, events)
	}
	if _, err := w.do(false, in); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	var done int
	if err := w.conn.QueryRow(t.Context(), `select count(*) from things where version = 6`).Scan(&done); err != nil || done != 1 {
		t.Errorf("%d published, %v", done, err)
	}
}

// TestALineThatIsNoCopy checks the error for input from elsewhere.
func TestALineThatIsNoCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.do(false, w.lines(held(ids.New[ids.BookingPrefix](), 1))+"none\n"); err == nil || !strings.Contains(err.Error(), "line 2 is not a copy") {
		t.Error(err)
	}
}

// TestSkipNumbers checks that the numbers after a counter are skipped, from the first for a tenant that has objects and no counter yet,
// that each call skips more, and that a call that fails skips nothing.
func TestSkipNumbers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := ids.New[ids.TenantPrefix]()
	w.exec(`insert into numbers values ($1, false, 42)`, other.UUID())
	w.thing(1, time.Now())
	skip := func(n int, kinds ...string) (string, error) {
		var out bytes.Buffer
		err := w.service.SkipNumbers(t.Context(), repair.Run{URL: w.url, Out: &out, Progress: &bytes.Buffer{}}, n, kinds)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n"), err
	}
	line := func(tenant ids.Tenant, live bool, first, last int) string {
		return fmt.Sprintf(`{"kind":"bookings","tenant":%q,"livemode":%v,"first":%d,"last":%d}`, tenant, live, first, last)
	}
	sorted := func(lines ...string) string { slices.Sort(lines); return strings.Join(lines, "\n") }
	if got, err := skip(1000); err != nil || got != sorted(line(other, false, 42, 1041), line(w.tenant, true, 1, 1000)) {
		t.Errorf("%v\n%s", err, got)
	}
	for _, tc := range []struct {
		n     int
		kinds []string
		want  string
	}{
		{0, nil, "--skip must be from 1 to 1000000"},
		{repair.MaxSkip + 1, nil, "--skip must be from 1 to 1000000"},
		{5, []string{"bookings", "leads"}, `owner has no numbers of "leads": choose from bookings`},
	} {
		if got, err := skip(tc.n, tc.kinds...); err == nil || !strings.Contains(err.Error(), tc.want) || got != "" {
			t.Errorf("%d %v: %v %s", tc.n, tc.kinds, err, got)
		}
	}
	if got, err := skip(1, "bookings"); err != nil || got != sorted(line(other, false, 1042, 1042), line(w.tenant, true, 1001, 1001)) {
		t.Errorf("%v\n%s", err, got)
	}
}
