package peers_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/peers"
)

var (
	_ app.TenantService  = (*peers.Tenants)(nil)
	_ app.BookingService = (*peers.Bookings)(nil)
	_ app.PaymentService = (*peers.Payments)(nil)
)

const secret = "k1:637573746f6d657273637573746f6d657273637573746f6d657273637573746f"

// other starts another service. It verifies the signed caller and passes it to respond.
func other(t *testing.T, name string, respond func(w http.ResponseWriter, r *http.Request, from caller.Caller)) *peer.Client {
	t.Helper()
	keys, err := caller.ParseKeys("customers=" + secret)
	if err != nil {
		t.Fatal(err)
	}
	verifier := &caller.Verifier{Self: name, Keys: keys}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, _, err := verifier.Verify(r.Header.Get(caller.Header), r.Method, r.URL.EscapedPath(), time.Now())
		if err != nil {
			httpx.WriteError(w, "https://booking.test", "", httpx.ErrCaller)
			return
		}
		respond(w, r, from)
	}))
	t.Cleanup(srv.Close)
	sign, err := caller.ParseKeys(name + "=" + secret)
	if err != nil {
		t.Fatal(err)
	}
	return &peer.Client{Target: name, BaseURL: srv.URL, Signer: &caller.Signer{From: "customers", Keys: sign}}
}

// invoicing returns a tenant of identity with a version.
func invoicing(version int64, clock *time.Time) internalapi.Tenant {
	return internalapi.Tenant{
		Name: "Demo", Timezone: "Europe/Berlin", Currency: "EUR", PolicyVersion: version, Clock: clock, InvoicePrefix: fmt.Sprint("R", version, "-"),
		InvoiceYear: true, LegalName: "Demo GmbH", Address: "Kai 1\nKiel", TaxID: "DE1",
		TaxBehavior: new(internalapi.Inclusive), DefaultTaxes: &[]api.Tax{{Name: "VAT", Rate: "19"}},
		Locale: new("de"), BankAccountHolder: new("Demo"), BankAccountNumber: new("DE89370400440532013000"), BankCode: new("COBADEFF"), BankName: new("Bank"),
		LogoHash: new("h"),
	}
}

func TestInvoicingIsCachedByVersion(t *testing.T) {
	t.Parallel()
	ctx := pgtest.Ctx(t, caller.Test)
	var calls, version atomic.Int64
	version.Store(1)
	tenants := peers.NewTenants(other(t, "identity", func(w http.ResponseWriter, r *http.Request, _ caller.Caller) {
		calls.Add(1)
		if want := "/internal/v1/tenants/" + caller.FromContext(ctx).Tenant.String(); r.URL.Path != want {
			t.Errorf("requested %s", r.URL.Path)
		}
		_ = json.NewEncoder(w).Encode(invoicing(version.Load(), nil))
	}))
	at := func(policyVersion int64, prefix string, wantCalls int64) {
		t.Helper()
		c := caller.FromContext(ctx)
		c.PolicyVersion = policyVersion
		got, err := tenants.Invoicing(caller.With(ctx, c))
		want := domain.Invoicing{Prefix: prefix, Year: true, Name: "Demo", LegalName: "Demo GmbH", Address: "Kai 1\nKiel", TaxID: "DE1"}
		want.LogoHash, want.Locale, want.Bank = "h", "de", domain.BankAccount{Holder: "Demo", Number: "DE89370400440532013000", Code: "COBADEFF", Name: "Bank"}
		want.Defaults = domain.TaxDefaults{Behavior: domain.TaxInclusive, Taxes: []money.Tax{{Name: "VAT", Rate: 190_000}}}
		if err != nil || !reflect.DeepEqual(got, want) || calls.Load() != wantCalls {
			t.Errorf("version %d: %+v, %v after %d calls", policyVersion, got, err, calls.Load())
		}
	}
	at(1, "R1-", 1)
	at(1, "R1-", 1)
	at(2, "R1-", 2) // identity is behind the caller: its response is used but not stored
	version.Store(2)
	at(2, "R2-", 3)
	at(2, "R2-", 3)
	at(1, "R1-", 3)
}

// TestInvoicingOfThePreviousVersion checks that the response of an identity that knows no taxes, no bank account and no logo means none, and is not stored.
func TestInvoicingOfThePreviousVersion(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	tenants := peers.NewTenants(other(t, "identity", func(w http.ResponseWriter, _ *http.Request, _ caller.Caller) {
		body := invoicing(1, nil)
		if calls.Add(1) == 1 {
			body.TaxBehavior, body.DefaultTaxes = nil, nil
			body.Locale, body.BankAccountHolder, body.BankAccountNumber, body.BankCode, body.BankName, body.LogoHash = nil, nil, nil, nil, nil, nil
		}
		_ = json.NewEncoder(w).Encode(body)
	}))
	ctx := pgtest.Ctx(t, caller.Test)
	for i, want := range []domain.TaxDefaults{{Behavior: domain.TaxExclusive}, {Behavior: domain.TaxInclusive, Taxes: []money.Tax{{Name: "VAT", Rate: 190_000}}}} {
		if got, err := tenants.Invoicing(ctx); err != nil || !reflect.DeepEqual(got.Defaults, want) || got.Bank.Name != []string{"", "Bank"}[i] {
			t.Errorf("call %d: %+v, %v", i+1, got.Defaults, err)
		}
	}
}

// TestLogo checks that the logo of the caller's tenant is requested once and stored by its own hash, and that a tenant without a logo causes
// no request.
func TestLogo(t *testing.T) {
	t.Parallel()
	ctx := pgtest.Ctx(t, caller.Test)
	var calls atomic.Int64
	current := "a" // the hash of the tenant's logo at identity; "": none
	tenants := peers.NewTenants(other(t, "identity", func(w http.ResponseWriter, r *http.Request, from caller.Caller) {
		calls.Add(1)
		if tenant := caller.FromContext(ctx).Tenant; from.Tenant != tenant || r.URL.Path != "/internal/v1/tenants/"+tenant.String()+"/logo" {
			t.Errorf("requested %s for %s", r.URL.Path, from.Tenant)
		}
		switch current {
		case "":
			httpx.WriteError(w, "https://booking.test", "req_1", apperr.New(apperr.NotFound, "logo_not_found", "The tenant has no logo."))
		case "down":
			httpx.WriteError(w, "https://booking.test", "req_1", apperr.ErrInternal)
		default:
			_ = json.NewEncoder(w).Encode(internalapi.TenantLogo{Hash: current, MediaType: "image/png", Logo: base64.StdEncoding.EncodeToString([]byte("logo " + current))})
		}
	}))
	for i, c := range []struct {
		hash, current, want string
		calls               int64
	}{
		{"", "a", "", 0},
		{"a", "a", "logo a", 1},
		{"a", "b", "logo a", 1},
		{"b", "c", "logo c", 2}, // it was changed again since
		{"c", "", "logo c", 2},
		{"b", "", "", 3}, // it was removed since
		{"b", "b", "logo b", 4},
		{"", "", "", 4},
	} {
		current = c.current
		got, err := tenants.Logo(ctx, c.hash)
		if err != nil || string(got.Content) != c.want || (c.want != "" && got.MediaType != "image/png") || calls.Load() != c.calls {
			t.Errorf("call %d: %q, %v after %d requests", i+1, got.Content, err, calls.Load())
		}
	}
	current = "down"
	if got, err := tenants.Logo(ctx, "d"); err == nil {
		t.Errorf("without identity: %q", got.Content)
	}
}

// TestStoredLogosHaveABound checks that only some of the logos of very many tenants are stored.
func TestStoredLogosHaveABound(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	large := base64.StdEncoding.EncodeToString(make([]byte, 512<<10))
	tenants := peers.NewTenants(other(t, "identity", func(w http.ResponseWriter, _ *http.Request, from caller.Caller) {
		calls.Add(1)
		_ = json.NewEncoder(w).Encode(internalapi.TenantLogo{Hash: from.Tenant.String(), MediaType: "image/png", Logo: large})
	}))
	const most = 32 // that fit
	clients := make([]context.Context, 3*most)
	for i := range clients {
		clients[i] = pgtest.Ctx(t, caller.Live)
	}
	for range 2 {
		for _, ctx := range clients {
			if _, err := tenants.Logo(ctx, caller.FromContext(ctx).Tenant.String()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := calls.Load(); n < 4*most {
		t.Errorf("%d requests for two times %d logos", n, 3*most)
	}
}

// TestActing checks that a worker acts with the tenant's state of a few seconds ago at most, and with the test clock only in test
// mode.
func TestActing(t *testing.T) {
	t.Parallel()
	tenant, clock := ids.New[ids.TenantPrefix](), time.Date(2030, 5, 1, 0, 0, 0, 0, time.UTC)
	var calls atomic.Int64
	tenants := peers.NewTenants(other(t, "identity", func(w http.ResponseWriter, r *http.Request, from caller.Caller) {
		if from.Tenant != tenant {
			httpx.WriteError(w, "https://booking.test", "req_1", apperr.New(apperr.NotFound, "tenant_not_found", "Tenant not found."))
			return
		}
		if from.Credential != "svc:customers" || !strings.HasSuffix(r.URL.Path, tenant.String()) {
			t.Errorf("%s requests %s", from.Credential, r.URL.Path)
		}
		_ = json.NewEncoder(w).Encode(invoicing(calls.Add(1), &clock))
	}))
	as := func(mode caller.Mode) caller.Caller {
		t.Helper()
		c, err := tenants.Acting(t.Context(), tenant, mode)
		if err != nil || c.Tenant != tenant || c.Mode != mode || c.Kind != "service" || c.Credential != "svc:customers" ||
			c.Timezone != "Europe/Berlin" || c.Currency != "EUR" || len(c.Scopes) != 0 {
			t.Fatalf("%+v, %v", c, err)
		}
		return c
	}
	if c := as(caller.Test); c.Clock == nil || !c.Clock.Equal(clock) || c.PolicyVersion != 1 {
		t.Errorf("in test mode: %+v", c)
	}
	if c := as(caller.Live); c.Clock != nil || c.PolicyVersion != 1 || calls.Load() != 1 {
		t.Errorf("in live mode: %+v after %d calls", c, calls.Load())
	}
	for ends := time.Now().Add(20 * time.Second); as(caller.Live).PolicyVersion == 1; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(ends) {
			t.Fatal("an old tenant is stored")
		}
	}
	var e *apperr.Error
	if _, err := tenants.Acting(t.Context(), ids.New[ids.TenantPrefix](), caller.Live); !errors.As(err, &e) || e.Code != "tenant_not_found" {
		t.Errorf("unknown: %v", err)
	}
}

// day returns a day in June 2030.
func day(n int) *domain.Days {
	d := civil.Date{Year: 2030, Month: 6, Day: n}
	return &domain.Days{First: d, Last: d}
}

// TestCreate checks that the service requests the booking of a quote as itself, on behalf of the caller's tenant and mode.
func TestCreate(t *testing.T) {
	t.Parallel()
	ctx := pgtest.Ctx(t, caller.Test)
	quote, lead, booking, customer := ids.New[ids.QuotePrefix](), ids.New[ids.LeadPrefix](), ids.New[ids.BookingPrefix](), ids.New[ids.CustomerPrefix]()
	service := ids.New[ids.ServicePrefix]()
	until := time.Date(2030, 5, 1, 10, 0, 0, 0, time.FixedZone("", 3600))
	var received []map[string]any
	bookings := &peers.Bookings{Client: other(t, "bookings", func(w http.ResponseWriter, r *http.Request, from caller.Caller) {
		if r.Method != http.MethodPost || r.URL.Path != "/internal/v1/bookings" || r.Header.Get("Idempotency-Key") != "k" {
			t.Errorf("requested %s %s with the key %q", r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"))
		}
		if was := caller.FromContext(ctx); from.Credential != "svc:customers" || from.Kind != "service" || from.Actor() != was.Credential || from.Tenant != was.Tenant || from.Mode != was.Mode || from.Currency != was.Currency {
			t.Errorf("called as %+v", from)
		}
		var in map[string]any
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		if received = append(received, in); in["quote_id"] == nil {
			httpx.WriteError(w, "https://booking.test", "req_1", apperr.New(apperr.Conflict, "slot_unavailable", "The unit is taken at that time."))
			return
		}
		fmt.Fprintf(w, `{"id":%q,"object":"booking","status":"pending","version":3,"customer_id":%q,"service_id":%q,"event_local_date":"2030-06-01","total_amount":{"amount":500,"currency":"USD"},
			"tax_behavior":"exclusive","tax_breakdown":[{"name":"VAT","rate":"19"}],"gross_amount":{"amount":595,"currency":"USD"}}`, booking, customer, service)
	})}
	usd := func(n int64) money.Amount { return money.Amount{Minor: n, Currency: "USD"} }
	got, err := bookings.Create(ctx, domain.LinkedBooking{
		Key: "k", Quote: quote, Lead: lead, Body: []byte(`{"event_date":"2030-06-01"}`), Total: usd(500), Deposit: usd(0), ValidUntil: until,
		Taxes: []money.TaxRow{{Tax: money.Tax{Name: "VAT", Rate: 88_750}, Taxable: 459, Amount: 41}},
	})
	if err != nil || !reflect.DeepEqual(got, domain.Booking{
		ID: booking, CustomerID: customer, ServiceID: service, Status: "pending", Total: usd(595), Days: day(1), Version: 3,
		Price: &domain.BookingPrice{Minor: 500, Behavior: domain.TaxExclusive, Taxes: []money.Tax{{Name: "VAT", Rate: 190_000}}},
	}) {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = bookings.Create(ctx, domain.LinkedBooking{Key: "k", Lead: lead, Body: []byte(`{"event_date":"2030-06-01"}`), ValidUntil: until})
	var refused *apperr.Error
	if !errors.As(err, &refused) || refused.Code != "slot_unavailable" || refused.Kind != apperr.Conflict {
		t.Errorf("refused: %v", err)
	}
	for i, want := range []string{
		fmt.Sprintf(`{"booking":{"event_date":"2030-06-01"},"currency":"USD","deposit_amount":0,"lead_id":%q,"quote_id":%q,"tax_breakdown":[{"name":"VAT","rate":"8.875","tax":41,"taxable":459}],"total_amount":500,"valid_until":"2030-05-01T09:00:00Z"}`, lead, quote),
		fmt.Sprintf(`{"booking":{"event_date":"2030-06-01"},"lead_id":%q,"valid_until":"2030-05-01T09:00:00Z"}`, lead),
	} {
		if sent, err := json.Marshal(received[i]); err != nil || string(sent) != want {
			t.Errorf("sent %s\nwant %s", sent, want)
		}
	}
}

// TestLookups checks that lookups distinguish absent resources from failures.
func TestLookups(t *testing.T) {
	t.Parallel()
	ctx := pgtest.Ctx(t, caller.Live)
	booking, unit, pack, service := ids.New[ids.BookingPrefix](), ids.New[ids.UnitPrefix](), ids.New[ids.PackagePrefix](), ids.New[ids.ServicePrefix]()
	bookings := &peers.Bookings{Client: other(t, "bookings", func(w http.ResponseWriter, r *http.Request, from caller.Caller) {
		if from.Mode != caller.Live {
			t.Errorf("called in %s mode", from.Mode)
		}
		switch r.Method + " " + strings.TrimPrefix(r.URL.Path, "/internal/v1") {
		case "GET /bookings/" + booking.String():
			fmt.Fprintf(w, `{"id":%q,"status":"cancelled","version":2,"customer_id":null,"event_local_date":"2030-06-02","gross_amount":{"amount":0,"currency":"JPY"}}`, booking)
		case "GET /catalogue/" + unit.String():
			fmt.Fprintf(w, `{"id":%q,"version":4,"details":{"service_id":null,"default_taxes":null}}`, unit)
		case "GET /catalogue/" + pack.String():
			fmt.Fprintf(w, `{"id":%q,"version":5,"details":{"service_id":%q,"default_taxes":null}}`, pack, service)
		case "GET /catalogue/" + service.String():
			fmt.Fprintf(w, `{"id":%q,"version":6,"details":{"service_id":null,"default_taxes":[{"name":"VAT","rate":"8.875"}]}}`, service)
		case "POST /prices":
			var in internalapi.PriceQuery
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
				t.Error(err)
			}
			if in.PackageID != pack.String() {
				httpx.WriteError(w, "https://booking.test", "req_1", apperr.Field("package_id", "Package not found."))
				return
			}
			fmt.Fprintf(w, `{"name":"Tour","service_id":%q,"currency":"USD","total_amount":22999,"deposit_amount":5000,"tax_behavior":"inclusive","taxes":[{"name":"VAT","rate":"19"}]}`, service)
		default:
			httpx.WriteError(w, "https://booking.test", "req_1", apperr.New(apperr.NotFound, "unit_not_found", "Unit not found."))
		}
	})}
	if got, err := bookings.Booking(ctx, booking); err != nil || !reflect.DeepEqual(got, domain.Booking{ID: booking, Status: "cancelled", Version: 2, Total: money.Amount{Currency: "JPY"}, Days: day(2)}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := bookings.Booking(ctx, ids.New[ids.BookingPrefix]()); !errors.Is(err, domain.ErrBookingNotFound) {
		t.Errorf("no booking: %v", err)
	}
	for _, want := range []domain.CatalogueItem{
		{ID: unit.String(), Version: 4},
		{ID: pack.String(), Version: 5, Details: domain.CatalogueDetails{Service: service}},
		{ID: service.String(), Version: 6, Details: domain.CatalogueDetails{Taxes: &[]money.Tax{{Name: "VAT", Rate: 88_750}}}},
	} {
		if got, err := bookings.Catalogue(ctx, want.ID); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	for _, id := range []string{ids.New[ids.UnitPrefix]().String(), "un_a/b?c"} {
		if _, err := bookings.Catalogue(ctx, id); !errors.Is(err, domain.ErrNotInCatalogue) {
			t.Errorf("no unit %s: %v", id, err)
		}
	}
	usd := func(n int64) money.Amount { return money.Amount{Minor: n, Currency: "USD"} }
	want := domain.PackagePrice{
		Name: "Tour", Service: service, Total: usd(22999), Deposit: usd(5000),
		Defaults: domain.TaxDefaults{Behavior: domain.TaxInclusive, Taxes: []money.Tax{{Name: "VAT", Rate: 190_000}}},
	}
	if got, err := bookings.Price(ctx, pack, "2030-07-04", 3); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	var refused *apperr.Error
	if _, err := bookings.Price(ctx, ids.New[ids.PackagePrefix](), "2030-07-04", 1); !errors.As(err, &refused) || refused.Fields[0].Field != "package_id" {
		t.Errorf("no package: %v", err)
	}
	down := &peers.Bookings{Client: &peer.Client{Target: "bookings", BaseURL: "http://127.0.0.1:1", Signer: bookings.Client.Signer}}
	if _, err := down.Booking(ctx, booking); !errors.Is(err, apperr.ErrUnavailable) {
		t.Errorf("no server: %v", err)
	}
}

var (
	_ app.CustomerResources = (*peers.OfCustomer)(nil)
	_ app.ObjectEvents      = (*peers.Events)(nil)
)

// TestPagesOfAnExport checks that requests for the pages of an export contain their cursors. A failure is a fault of the platform,
// never of the client's request.
func TestPagesOfAnExport(t *testing.T) {
	t.Parallel()
	ctx, customer := pgtest.Ctx(t, caller.Test), ids.New[ids.CustomerPrefix]()
	var fail error
	respond := func(path, want, body string) func(w http.ResponseWriter, r *http.Request, _ caller.Caller) {
		return func(w http.ResponseWriter, r *http.Request, _ caller.Caller) {
			if query, err := url.QueryUnescape(r.URL.RawQuery); r.Method != http.MethodGet || r.URL.Path != path || query != want || err != nil {
				t.Errorf("requested %s %s?%s, want %s?%s", r.Method, r.URL.Path, query, path, want)
			}
			if fail != nil {
				httpx.WriteError(w, "https://booking.test", "req_1", fail)
				return
			}
			fmt.Fprint(w, body)
		}
	}
	whole := &peers.OfCustomer{Path: "/internal/v1/bookings", Client: other(t, "bookings", respond("/internal/v1/bookings", "cursor=c d&customer_id="+customer.String(), `{"data":[{"id":"bk_1"}],"next":"n"}`))}
	names := &peers.OfCustomer{Path: "/internal/v1/payment-intents", Client: other(t, "payments", respond("/internal/v1/payment-intents", "cursor=&customer_id="+customer.String()+"&ids_only=true", `{"ids":["pi_1"]}`))}
	events := &peers.Events{Client: other(t, "webhooks", respond("/internal/v1/events", "cursor=c&object_ids=cu_1,bk_1", `{"data":[{"id":"evt_1"}],"next":"n"}`))}
	if list, next, err := whole.BodiesOf(ctx, customer, "c d"); len(list) != 1 || next != "n" || err != nil {
		t.Errorf("%s, %q, %v", list, next, err)
	}
	if list, next, err := names.IDsOf(ctx, customer, ""); len(list) != 1 || next != "" || err != nil {
		t.Errorf("%s, %q, %v", list, next, err)
	}
	if list, next, err := events.EventsOf(ctx, []string{"cu_1", "bk_1"}, "c"); len(list) != 1 || next != "n" || err != nil {
		t.Errorf("%s, %q, %v", list, next, err)
	}
	for _, fail = range []error{apperr.ErrUnavailable, apperr.New(apperr.NotFound, "route_not_found", "No."), apperr.Field("cursor", "No.")} {
		if _, _, err := whole.BodiesOf(ctx, customer, "c d"); !errors.Is(err, apperr.ErrUnavailable) {
			t.Errorf("%v is %v", fail, err)
		}
	}
	fail = apperr.ErrTimeout
	_, _, err := events.EventsOf(ctx, []string{"cu_1", "bk_1"}, "c")
	var e *apperr.Error
	if !errors.As(err, &e) || e.Kind != apperr.Timeout {
		t.Errorf("a time-out is %v", err)
	}
}

// TestDaysOfABooking checks that the days of a booking are those in its time zone, and that an end at midnight does not add a day.
func TestDaysOfABooking(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ end, want string }{
		{`null`, "2030-07-01"},
		{`"2030-07-02T03:00:00Z"`, "2030-07-01"}, // 23:00
		{`"2030-07-02T04:00:00Z"`, "2030-07-01"}, // midnight
		{`"2030-07-02T04:00:01Z"`, "2030-07-01 – 2030-07-02"},
		{`"2030-07-08T16:00:00Z"`, "2030-07-01 – 2030-07-08"},
	} {
		bookings := &peers.Bookings{Client: other(t, "bookings", func(w http.ResponseWriter, _ *http.Request, _ caller.Caller) {
			_, _ = fmt.Fprintf(w, `{"id":%q,"event_local_date":"2030-07-01","timezone":"America/New_York","ends_at":%s}`, ids.New[ids.BookingPrefix](), tc.end)
		})}
		b, err := bookings.Booking(pgtest.Ctx(t, caller.Test), ids.New[ids.BookingPrefix]())
		if err != nil || b.Days == nil || b.Days.String() != tc.want {
			t.Errorf("end %s: %v, %v, want %s", tc.end, b.Days, err, tc.want)
		}
	}
}
