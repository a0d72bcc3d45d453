package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/memtest"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// exported is an export, with each part as the received bytes.
type exported struct {
	Object         string
	Customer       json.RawMessage
	Bookings       []json.RawMessage
	Leads          []json.RawMessage
	Quotes         []json.RawMessage
	Invoices       []json.RawMessage
	CreditNotes    []json.RawMessage `json:"credit_notes"`
	PaymentIntents []json.RawMessage `json:"payment_intents"`
	Refunds        []json.RawMessage
	Events         []json.RawMessage
}

func (w *world) export(ctx context.Context, customer string) exported {
	w.T.Helper()
	return decode[exported](w.do(ctx, "GET", "/customers/"+customer+"/export", "").is(200))
}

// The ids in the examples of the contract.
const (
	exampleBooking = "bk_01k00000000000000000000001"
	exampleIntent  = "pi_3PaymentIntent0000001"
	exampleEvent   = "evt_01k00000000000000000000002"
)

// example returns the body of an example in the contract, with replacements.
func example(t *testing.T, operation string, replace ...string) json.RawMessage {
	t.Helper()
	raw, err := os.ReadFile("../../../../proto/examples/" + operation + ".json")
	if err != nil {
		t.Fatal(err)
	}
	body := decodeJSON[struct {
		Response struct{ Body json.RawMessage }
	}](t, raw).Response.Body
	return json.RawMessage(strings.NewReplacer(replace...).Replace(string(body)))
}

// filled creates a customer with leads, quotes and invoices, and with bookings and events in the other services. It returns the
// customer's id and, by name, the paths of what the export contains.
func (w *world) filled(ctx context.Context) (id string, paths map[string][]string) {
	w.T.Helper()
	ctx = withScopes(ctx, "write:customers")
	q := w.sentQuote(ctx, "")
	id, paths = q.CustomerID, map[string][]string{"quotes": {"/quotes/" + q.ID}}
	lapsing := w.do(ctx, "POST", "/quotes", fmt.Sprintf(`{"customer_id":%q,"event_date":"2031-05-02",%s}`, id, lines)).is(201).quote()
	paths["quotes"] = append(paths["quotes"], "/quotes/"+w.onQuote(ctx, lapsing.ID, "send").is(200).quote().ID)
	for range 2 {
		l := w.lead(ctx, `"email":"a@b.co","message":"<&>"`)
		w.do(ctx, "POST", "/leads/"+l.ID+"/convert", fmt.Sprintf(`{"customer_id":%q}`, id)).is(200)
		paths["leads"] = append(paths["leads"], "/leads/"+l.ID)
	}
	for range 3 {
		v := w.do(ctx, "POST", "/invoices", fmt.Sprintf(`{"customer_id":%q,"line_items":[%s]}`, id, line(2))).is(201).invoice()
		paths["invoices"] = append(paths["invoices"], "/invoices/"+v.ID)
	}
	w.do(ctx, "POST", paths["invoices"][0]+"/open", "").is(200)
	w.do(ctx, "POST", paths["invoices"][0]+"/record-payment", `{"amount":`+usd(1)+`,"method":"cash","reference":"r"}`).is(200)
	for range 2 {
		n := w.do(ctx, "POST", paths["invoices"][0]+"/credit-notes", `{"amount":`+usd(1)+`,"reason":"r"}`)
		if n.Status == 201 { // the second one credits the paid part
			paths["credit_notes"] = append(paths["credit_notes"], "/credit-notes/"+n.note().ID)
		}
	}
	for range 3 {
		booking := ids.New[ids.BookingPrefix]().String()
		w.archive.Add(ctx, "bookings", id, booking, example(w.T, "getBooking", exampleBooking, booking))
		paths["bookings"] = append(paths["bookings"], "/bookings/"+booking)
		intent := "pi_" + booking
		w.archive.Add(ctx, "payment_intents", id, intent, example(w.T, "getPaymentIntent", exampleIntent, intent))
		paths["payment_intents"] = append(paths["payment_intents"], "/payment-intents/"+intent)
		w.archive.Add(ctx, "refunds", id, "rf_"+booking, example(w.T, "getRefund", exampleIntent, intent))
	}
	objects := []string{id}
	for _, list := range paths {
		for _, path := range list {
			objects = append(objects, path[strings.LastIndex(path, "/")+1:])
		}
	}
	for _, object := range objects {
		w.archive.AddEvent(ctx, object, w.event(object))
	}
	return id, paths
}

// event returns the body of an event about an object.
func (w *world) event(object string) json.RawMessage {
	w.T.Helper()
	return example(w.T, "getEvent", exampleEvent, "evt_"+object[strings.Index(object, "_")+1:])
}

// TestExport checks that the export of a customer contains everything that belongs to the customer, in the form of the resources
// themselves, newest first. It contains nothing of other customers.
func TestExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, foreign := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	for _, ctx := range []context.Context{
		pgtest.CtxOf(t, tenant, caller.Test), pgtest.CtxOf(t, tenant, caller.Live), pgtest.CtxOf(t, foreign, caller.Test), pgtest.CtxOf(t, foreign, caller.Live),
	} {
		w.filled(ctx)
		id, paths := w.filled(ctx)
		for _, w.archive.PageSize = range []int{1, 2, 1000} {
			got := w.export(ctx, id)
			if self := w.do(ctx, "GET", "/customers/"+id, "").is(200); got.Object != "customer_export" || string(got.Customer) != string(self.Body) {
				t.Errorf("%s of %s", got.Object, got.Customer)
			}
			for name, list := range map[string][]json.RawMessage{"leads": got.Leads, "quotes": got.Quotes, "invoices": got.Invoices, "credit_notes": got.CreditNotes} {
				var want []string
				for _, path := range slices.Backward(paths[name]) {
					want = append(want, string(w.do(ctx, "GET", path, "").is(200).Body))
				}
				if text := texts(list); !slices.Equal(text, want) {
					t.Errorf("%s: got %s, want %s", name, text, want)
				}
			}
			events := len(slices.Concat(paths["leads"], paths["quotes"], paths["invoices"], paths["bookings"], paths["payment_intents"])) + 1
			if len(got.Bookings) != 3 || len(got.Events) != events || len(got.PaymentIntents) != 3 || len(got.Refunds) != 3 {
				t.Errorf("%d bookings, %d events, want %d; %d payment intents, %d refunds", len(got.Bookings), len(got.Events), events,
					len(got.PaymentIntents), len(got.Refunds))
			}
			if first := string(w.event(id)); string(got.Events[0]) != first {
				t.Errorf("the first event is %s, want the customer's", got.Events[0])
			}
		}
	}
}

func texts(list []json.RawMessage) []string {
	out := make([]string, len(list))
	for i, body := range list {
		out[i] = string(body)
	}
	return out
}

// TestExportOfLittle checks the export of a customer without other data, and requests for customers who cannot be exported.
func TestExportOfLittle(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	c := w.create(ctx, "")
	if got := w.export(ctx, c.ID); len(got.Bookings)+len(got.Leads)+len(got.Quotes)+len(got.Invoices)+len(got.Events) != 0 {
		t.Errorf("%+v", got)
	}
	path := "/customers/" + c.ID + "/export"
	w.do(pg.OtherMode(ctx), "GET", path, "").is(403, "mode_mismatch")
	w.do(pgtest.Ctx(t, caller.Test), "GET", path, "").is(404, "customer_not_found")
	w.do(ctx, "GET", "/customers/x/export", "").is(404, "customer_not_found")
	w.do(ctx, "GET", path+"?x=1", "").is(422, "invalid_request", "x")
	w.do(ctx, "GET", path, "", "X-Caller: ").is(401)
	w.do(ctx, "DELETE", "/customers/"+c.ID, "").is(204)
	w.do(ctx, "GET", path, "").is(404, "customer_not_found")
}

// TestEachTableOfACustomerIsExported checks that every table that references a customer belongs to the export or to the customer
// itself.
func TestEachTableOfACustomerIsExported(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	parts := decode[map[string]json.RawMessage](w.do(ctx, "GET", "/customers/"+w.create(ctx, "").ID+"/export", "").is(200))
	rows, err := w.Owner().Query(ctx, `
		select table_name::text from information_schema.columns where table_schema = 'public' and column_name = 'customer_id'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 5 {
		t.Fatal(tables, err)
	}
	own := []string{"customer_words", "customer_metadata"} // part of the customer itself
	for _, table := range tables {
		if _, ok := parts[table]; !ok && !slices.Contains(own, table) {
			t.Errorf("the table %s is not exported: add it to ownedByCustomer, which also erases it", table)
		}
	}
}

// TestExportWithoutAnotherService checks that an unreachable service causes an error before the first byte is sent. Later it cuts
// off the response.
func TestExportWithoutAnotherService(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	id, _ := w.filled(ctx)
	srv := httptest.NewServer(w.engine)
	t.Cleanup(srv.Close)
	fail := func(call string, page int, err error) {
		w.archive.Before = func(_ context.Context, c string, p int) error {
			if c == call && p == page {
				return err
			}
			return nil
		}
	}
	for _, call := range []string{"bookings", "ids of bookings", "payment_intents", "ids of payment_intents", "refunds", "events"} {
		fail(call, 0, apperr.ErrUnavailable)
		a := w.do(ctx, "GET", "/customers/"+id+"/export", "").is(503, "unavailable")
		if a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: 503 without Retry-After", call)
		}
		fail(call, 0, apperr.ErrTimeout)
		w.do(ctx, "GET", "/customers/"+id+"/export", "").is(504, "upstream_timeout")
		fail(call, 0, errors.New("broken"))
		w.do(ctx, "GET", "/customers/"+id+"/export", "").is(500, "internal_error")
		if strings.HasPrefix(call, "ids of ") {
			continue // all pages are read before the first page of events
		}
		fail(call, 1, apperr.ErrUnavailable)
		res := w.fetch(ctx, srv, "/customers/"+id+"/export")
		if body, err := io.ReadAll(res.Body); res.StatusCode != 200 || !errors.Is(err, io.ErrUnexpectedEOF) || json.Valid(body) {
			t.Errorf("%s: %s, %v after %d bytes", call, res.Status, err, len(body))
		}
	}
}

// TestExportWhileBookingsAreCreated checks that a booking created while the export runs causes no failure and no repetition.
func TestExportWhileBookingsAreCreated(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	id, paths := w.filled(ctx)
	w.archive.Before = func(_ context.Context, call string, page int) error {
		if call == "bookings" && page > 0 || call == "ids of bookings" {
			booking := ids.New[ids.BookingPrefix]().String()
			w.archive.Add(ctx, "bookings", id, booking, example(t, "getBooking", exampleBooking, booking))
		}
		return nil
	}
	got := w.export(ctx, id)
	seen := texts(got.Bookings)
	slices.Sort(seen)
	if n := len(slices.Compact(seen)); n != len(got.Bookings) || n < len(paths["bookings"]) {
		t.Errorf("%d different bookings of %d", n, len(got.Bookings))
	}
}

// TestExportsOfATenantAreBounded checks that the parallel exports of a tenant are limited, because they count as downloads.
func TestExportsOfATenantAreBounded(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/customers/" + w.create(ctx, "").ID + "/export"
	release := make(chan struct{})
	w.archive.Before = func(_ context.Context, call string, _ int) error {
		if call == "bookings" {
			<-release
		}
		return nil
	}
	ended := make(chan response)
	for range 9 { // one reads its first page; seven wait for a slot
		go func() { ended <- w.do(ctx, "GET", path, "") }()
	}
	select {
	case refused := <-ended:
		if refused.is(429, "rate_limited"); refused.Header.Get("Retry-After") == "" {
			t.Errorf("headers %v", refused.Header)
		}
	case <-time.After(time.Minute):
		t.Error("none of nine exports is refused")
	}
	close(release)
	for range 8 {
		if a := <-ended; a.Status != 200 {
			t.Errorf("status %d", a.Status)
		}
	}
}

// large represents services that store much data of a customer. It creates each page on request.
type large struct{ booking, event json.RawMessage }

const largePage = 100 // bookings of about 20 kB each, the largest possible page

// largeBookings and largeLeads are many more bytes than TestLargeExport allows in memory.
var largeBookings, largeLeads = func() (bookings, leads int) {
	if os.Getenv("TEST_SCALE") == "full" {
		return 20_000, 3000
	}
	return 4000, 1000
}()

func (f *large) BodiesOf(_ context.Context, _ ids.Customer, cursor string) (list []json.RawMessage, next string, err error) {
	for range largePage {
		list = append(list, slices.Clone(f.booking))
	}
	return list, counted(cursor, largeBookings/largePage), nil
}

func (f *large) IDsOf(_ context.Context, _ ids.Customer, cursor string) (list []string, next string, err error) {
	for range 1000 {
		list = append(list, ids.New[ids.BookingPrefix]().String())
	}
	return list, counted(cursor, largeBookings/1000), nil
}

func (f *large) EventsOf(_ context.Context, objects []string, _ string) (list []json.RawMessage, next string, err error) {
	for range objects {
		list = append(list, slices.Clone(f.event))
	}
	return list, "", nil
}

// counted returns the cursor of the page after the given one, or "" after the last one.
func counted(cursor string, pages int) string {
	if len(cursor)+1 == pages {
		return ""
	}
	return cursor + "x"
}

// TestLargeExport checks that an export of any size is sent completely with little memory. It is not parallel, because it measures
// the memory of the whole process.
func TestLargeExport(t *testing.T) {
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	metadata := strings.Repeat("m", 20_000)
	much := &large{
		booking: example(t, "getBooking", `"order": "17"`, `"order": "`+metadata+`"`),
		event:   example(t, "getEvent", `"order": "17"`, `"order": "`+metadata+`"`),
	}
	w.exports.bookings, w.exports.events = much, much
	if len(much.booking) < 20_000 || len(much.event) < 20_000 {
		t.Fatal("the examples have no metadata")
	}
	w.engine = w.serve(w.DB.App)
	srv := httptest.NewServer(w.engine)
	t.Cleanup(srv.Close)
	c := caller.FromContext(ctx)
	id := w.create(ctx, "").ID
	w.Exec(`insert into leads (tenant_id, livemode, id, status, first_name, customer_id, metadata, created_at, updated_at)
		select $1, $2, gen_random_uuid(), 'new', 'Ann', $3, jsonb_build_object('k', $4::text)::text::json, now() - n * interval '1 second', now()
		from generate_series(1, $5::int) n`, c.Tenant, c.Live(), must(t, ids.Parse[ids.CustomerPrefix], id), metadata, largeLeads)
	w.Exec(`analyze leads`)
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var sent int64
	kinds := map[string]int{}
	memtest.Under(t, int64(before.HeapAlloc)+48<<20, func() {
		res := w.fetch(ctx, srv, "/customers/"+id+"/export")
		body := &counter{r: res.Body}
		for tokens, property := json.NewDecoder(body), ""; ; {
			token, err := tokens.Token()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if name, ok := token.(string); ok && property == "object" {
				kinds[name]++
				property = ""
			} else if ok {
				property = name
			}
		}
		sent = body.n
	})
	t.Logf("%d MiB were sent", sent>>20)
	events := largeBookings + largeLeads + 1
	if kinds["event"] != events || kinds["booking"] != largeBookings+events || kinds["lead"] != largeLeads || sent < int64(20_000*(largeBookings+events+largeLeads)) {
		t.Errorf("%v in %d bytes", kinds, sent)
	}
}

// counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
