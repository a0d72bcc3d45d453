package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/contract"
)

var update = flag.Bool("update", false, "rewrite the examples of the contract, proto/examples")

// TestExamples recreates each example of the contract in one scenario of an operator: the offers, the bookings, and the deliveries
// to a receiver. It fails if a response differs from the example. After a change, run it with -update, and then run make gen.
func TestExamples(t *testing.T) {
	onMachine(t) // a cluster has no stand-in for Stripe
	slug := strings.ReplaceAll(unique("harbour"), "-", "")
	var created struct{ Secret string }
	shared.identity(t, nil, "tenant", "create", "--slug", slug, "--name", "Harbour Kayaks", "--timezone", "America/New_York", "--currency", "USD")
	shared.identity(t, &created, "key", "create", "--tenant", slug, "--mode", "test", "--scopes", "all", "--json")
	receiver := serveReceiver(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	b := &book{client: shared.with(t, created.Secret), masks: newMasks(slug, receiver.URL), created: map[string]bool{}}

	b.step(t, "getTenant", "GET", "/tenant", "")
	b.step(t, "getMe", "GET", "/me", "")
	service, unit, pack := b.catalogue(t)
	customer := b.customer(t)
	endpoint := b.endpoint(t, receiver.URL)
	booking := b.booking(t, service, unit, pack, customer)
	b.events(t, booking, endpoint)
	b.lead(t, customer, service, pack)
	b.quote(t, customer, unit, pack)
	b.invoice(t, customer)
	b.payment(t, slug, customer, pack)
	b.clock(t)
	b.calendar(t)
	b.step(t, "deleteWebhookEndpoint", "DELETE", "/webhook-endpoints/"+endpoint, "")
	b.step(t, "deleteCustomer", "DELETE", "/customers/"+customer, "")
	b.export(t)
	b.requestLog(t, booking)
	b.closure(t, unit)

	spec, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range spec.Operations() {
		if !b.created[op.ID] {
			t.Errorf("%s has no example", op.ID)
		}
	}
}

func (b *book) catalogue(t *testing.T) (service, unit, pack string) {
	t.Helper()
	service = b.step(t, "createService", "POST", "/services", `{"name":"Kayak tour","description":"Two hours along the coast.","duration_minutes":120}`)
	b.step(t, "getService", "GET", "/services/"+service, "")
	b.step(t, "updateService", "PATCH", "/services/"+service, `{"buffer_after_minutes":30,"slot_step_minutes":150}`)
	b.step(t, "listServices", "GET", "/services?active=true&limit=10", "")

	unit = b.step(t, "createUnit", "POST", "/units", fmt.Sprintf(`{"name":"Kayak 1","service_ids":[%q],"opening_hours":{"sat":[["09:00","17:00"]]}}`, service))
	b.step(t, "getUnit", "GET", "/units/"+unit, "")
	b.step(t, "updateUnit", "PATCH", "/units/"+unit, `{"capacity":2}`)
	b.step(t, "listUnits", "GET", "/units?service_id="+service, "")

	pack = b.step(t, "createPackage", "POST", "/packages", fmt.Sprintf(`{"service_id":%q,"name":"Coast tour","base_price":{"amount":8000,"currency":"USD"},"deposit_type":"percentage","deposit_value":2500}`, service))
	b.step(t, "getPackage", "GET", "/packages/"+pack, "")
	b.step(t, "updatePackage", "PATCH", "/packages/"+pack, `{"description":"Guide and equipment included."}`)
	b.step(t, "listPackages", "GET", "/packages?service_id="+service, "")

	rule := b.step(t, "createHolidayRule", "POST", "/holiday-rules", fmt.Sprintf(`{"name":"Summer","date_from":"2027-07-01","date_to":"2027-08-31","multiplier_bps":12500,"applies_to":{"service_ids":[%q]}}`, service))
	b.step(t, "getHolidayRule", "GET", "/holiday-rules/"+rule, "")
	b.step(t, "updateHolidayRule", "PATCH", "/holiday-rules/"+rule, `{"recurrence":"yearly"}`)
	b.step(t, "listHolidayRules", "GET", "/holiday-rules?active=true", "")
	return service, unit, pack
}

func (b *book) customer(t *testing.T) string {
	t.Helper()
	customer := b.step(t, "createCustomer", "POST", "/customers", `{"first_name":"Ada","last_name":"Lovelace","email":"ada@example.com","metadata":{"source":"website"}}`)
	b.step(t, "getCustomer", "GET", "/customers/"+customer, "")
	b.step(t, "updateCustomer", "PATCH", "/customers/"+customer, `{"phone":"+1 555 0100"}`)
	b.step(t, "listCustomers", "GET", "/customers?email=ada@example.com", "")
	return customer
}

func (b *book) endpoint(t *testing.T, url string) string {
	t.Helper()
	b.step(t, "listEventTypes", "GET", "/webhook-endpoints/event-types", "")
	endpoint := b.step(t, "createWebhookEndpoint", "POST", "/webhook-endpoints", fmt.Sprintf(`{"url":%q,"event_types":["booking.created","booking.updated"],"headers":{"X-Environment":"staging"}}`, url))
	b.step(t, "getWebhookEndpoint", "GET", "/webhook-endpoints/"+endpoint, "")
	b.step(t, "updateWebhookEndpoint", "PATCH", "/webhook-endpoints/"+endpoint, `{"event_types":["booking.created","booking.updated","booking.cancelled"],"description":"Website"}`)
	b.step(t, "listWebhookEndpoints", "GET", "/webhook-endpoints?status=enabled", "")
	return endpoint
}

func (b *book) booking(t *testing.T, service, unit, pack, customer string) string {
	t.Helper()
	b.step(t, "listAvailability", "GET", "/availability?from=2027-07-03&to=2027-07-03&service_id="+service, "")
	booking := b.step(t, "createBooking", "POST", "/bookings", fmt.Sprintf(
		`{"event_date":"2027-07-03","event_start_time":"09:00","customer_id":%q,"unit_id":%q,"package_id":%q,"hold_minutes":60,"metadata":{"order":"17"}}`, customer, unit, pack))
	b.step(t, "getBooking", "GET", "/bookings/"+booking+"?expand=customer", "")
	b.step(t, "updateBooking", "PATCH", "/bookings/"+booking, `{"status":"confirmed","guest_count":2}`)
	b.step(t, "explainAvailability", "GET", "/availability/explain?unit_id="+unit+"&starts_at=2027-07-03T09:00:00-04:00", "")
	b.client.want(t, http.StatusOK, "PATCH", "/packages/"+pack, `{"base_price":{"amount":9000,"currency":"USD"}}`)
	b.step(t, "repriceBooking", "POST", "/bookings/"+booking+"/reprice", `{}`)
	b.step(t, "listBookings", "GET", "/bookings?status=pending,confirmed&event_date_from=2027-07-01&limit=10", "")
	b.step(t, "cancelBooking", "POST", "/bookings/"+booking+"/cancel", `{"reason":"Bad weather"}`)
	return booking
}

func (b *book) lead(t *testing.T, customer, service, pack string) {
	t.Helper()
	lead := b.step(t, "createLead", "POST", "/leads", fmt.Sprintf(
		`{"first_name":"Grace","last_name":"Hopper","email":"grace@example.com","source":"website","event_date":"2027-07-10","guest_count":2,"service_id":%q,"message":"Is the coast tour free?"}`, service))
	b.step(t, "getLead", "GET", "/leads/"+lead, "")
	b.step(t, "updateLead", "PATCH", "/leads/"+lead, `{"status":"contacted"}`)
	b.step(t, "listLeads", "GET", "/leads?status=new,contacted&q=grace", "")
	b.step(t, "convertLead", "POST", "/leads/"+lead+"/convert", fmt.Sprintf(`{"customer_id":%q,"booking":{"package_id":%q}}`, customer, pack))
}

func (b *book) quote(t *testing.T, customer, unit, pack string) {
	t.Helper()
	lines := `[{"description":"Coast tour for two","quantity":2,"unit_amount":{"amount":9000,"currency":"USD"},"discount_bps":1000,"taxes":[{"name":"Sales tax","rate":"8.875"}]}]`
	create := fmt.Sprintf(`{"customer_id":%q,"unit_id":%q,"package_id":%q,"event_date":"2027-07-17","event_start_time":"09:00","guest_count":2,"expires_at":"2027-07-10T16:00:00Z","line_items":%s,"deposit_amount":{"amount":5000,"currency":"USD"}}`, customer, unit, pack, lines)
	quote := b.step(t, "createQuote", "POST", "/quotes", create)
	b.step(t, "getQuote", "GET", "/quotes/"+quote, "")
	b.step(t, "updateQuote", "PATCH", "/quotes/"+quote, `{"terms":"Free of charge until a day before."}`)
	b.step(t, "sendQuote", "POST", "/quotes/"+quote+"/send", `{}`)
	b.step(t, "acceptQuote", "POST", "/quotes/"+quote+"/accept", `{}`)
	b.pdf(t, "getQuotePdf", "/quotes/"+quote+"/pdf")
	second := b.client.want(t, http.StatusCreated, "POST", "/quotes", create).id(t)
	b.client.want(t, http.StatusOK, "POST", "/quotes/"+second+"/send", "")
	b.step(t, "declineQuote", "POST", "/quotes/"+second+"/decline", `{"reason":"Another day"}`)
	third := b.client.want(t, http.StatusCreated, "POST", "/quotes", create).id(t)
	b.step(t, "cancelQuote", "POST", "/quotes/"+third+"/cancel", `{}`)
	draft := b.client.want(t, http.StatusCreated, "POST", "/quotes", create).id(t)
	b.step(t, "deleteQuote", "DELETE", "/quotes/"+draft, "")
	b.step(t, "listQuotes", "GET", "/quotes?status=accepted&expand=customer", "")
}

func (b *book) payment(t *testing.T, slug, customer, pack string) {
	t.Helper()
	var tenant struct{ ID string }
	b.client.want(t, http.StatusOK, "GET", "/tenant", "").decode(t, &tenant)
	shared.connectGateway(t, tenant.ID)
	booking := b.client.want(t, http.StatusCreated, "POST", "/bookings", fmt.Sprintf(
		`{"event_date":"2027-07-24","event_start_time":"09:00","customer_id":%q,"package_id":%q}`, customer, pack)).id(t)
	path := "/payment-intents/" + b.step(t, "createPaymentIntent", "POST", "/payment-intents", fmt.Sprintf(
		`{"booking_id":%q,"amount_minor":2500,"currency":"USD","description":"Deposit","metadata":{"order":"17"}}`, booking))
	b.step(t, "getPaymentIntent", "GET", path, "")
	b.step(t, "cancelPaymentIntent", "POST", path+"/cancel", `{}`)
	var held intent
	b.client.want(t, http.StatusCreated, "POST", "/payment-intents", fmt.Sprintf(
		`{"booking_id":%q,"amount_minor":2500,"capture_method":"manual"}`, booking)).decode(t, &held)
	shared.stripe(t).confirm(t, held, "pm_card_visa")
	await(t, "the amount is authorised", func() bool {
		return read[intent](t, b.client, "/payment-intents/"+held.ID).Status == "requires_capture"
	})
	b.step(t, "capturePaymentIntent", "POST", "/payment-intents/"+held.ID+"/capture", `{"amount_minor":2000}`)
	b.step(t, "listPaymentIntents", "GET", "/payment-intents?status=succeeded&limit=10", "")
	payments := "/bookings/" + booking + "/payments"
	await(t, "the booking knows of the payment", func() bool { return len(b.client.list(t, payments)) == 1 })
	refund := b.step(t, "createRefund", "POST", "/refunds", fmt.Sprintf(
		`{"payment_intent_id":%q,"amount_minor":500,"reason":"requested_by_customer","metadata":{"order":"17"}}`, held.ID))
	b.step(t, "getRefund", "GET", "/refunds/"+refund, "")
	b.step(t, "listRefunds", "GET", "/refunds?booking_id="+booking+"&limit=10", "")
	await(t, "the booking knows of the refund", func() bool {
		return b.client.list(t, payments)[0]["amount_refunded"].(map[string]any)["amount"].(float64) == 500
	})
	b.step(t, "listBookingPayments", "GET", payments+"?limit=10", "")
}

func (b *book) invoice(t *testing.T, customer string) {
	t.Helper()
	create := fmt.Sprintf(`{"customer_id":%q,"line_items":[{"description":"Dry bag","quantity":1,"unit_amount":{"amount":2500,"currency":"USD"},"taxes":[{"name":"Sales tax","rate":"8.875"}]}],"due_at":"2027-07-31","billing_address":"12 St James Square, London"}`, customer)
	invoice := b.step(t, "createInvoice", "POST", "/invoices", create)
	b.step(t, "getInvoice", "GET", "/invoices/"+invoice, "")
	b.step(t, "updateInvoice", "PATCH", "/invoices/"+invoice, `{"notes":"Thank you."}`)
	b.step(t, "openInvoice", "POST", "/invoices/"+invoice+"/open", `{}`)
	paid := b.client.want(t, http.StatusOK, "POST", "/invoices/"+invoice+"/record-payment", `{"amount":{"amount":500,"currency":"USD"},"method":"cash"}`)
	var body struct{ Payments []struct{ ID string } }
	paid.decode(t, &body)
	b.step(t, "reverseInvoicePayment", "POST", "/invoices/"+invoice+"/payments/"+body.Payments[0].ID+"/reverse", `{}`)
	b.step(t, "recordInvoicePayment", "POST", "/invoices/"+invoice+"/record-payment", `{"amount":{"amount":2722,"currency":"USD"},"method":"bank_transfer","reference":"17"}`)
	b.pdf(t, "getInvoicePdf", "/invoices/"+invoice+"/pdf")
	note := b.step(t, "createCreditNote", "POST", "/invoices/"+invoice+"/credit-notes", `{"amount":{"amount":1000,"currency":"USD"},"reason":"The bag was damaged.","refund":"manual"}`)
	b.step(t, "getCreditNote", "GET", "/credit-notes/"+note, "")
	b.pdf(t, "getCreditNotePdf", "/credit-notes/"+note+"/pdf")
	b.step(t, "listCreditNotes", "GET", "/credit-notes?invoice_id="+invoice+"&limit=10", "")
	second := b.client.want(t, http.StatusCreated, "POST", "/invoices", create).id(t)
	b.client.want(t, http.StatusOK, "POST", "/invoices/"+second+"/open", "")
	b.step(t, "markInvoiceUncollectible", "POST", "/invoices/"+second+"/mark-uncollectible", `{}`)
	b.step(t, "voidInvoice", "POST", "/invoices/"+second+"/void", `{}`)
	draft := b.client.want(t, http.StatusCreated, "POST", "/invoices", create).id(t)
	b.step(t, "deleteInvoice", "DELETE", "/invoices/"+draft, "")
	b.step(t, "listInvoices", "GET", "/invoices?status=paid&limit=10", "")
}

// exampleCalendar is the path of a calendar in the examples.
const exampleCalendar = "/calendar/mfrggzdfmztwq2lknnwg23tpobyxe43u.ics"

// calendar creates the examples of calendar feeds. The example of the feed itself contains its first lines, and the token of its
// address is replaced.
func (b *book) calendar(t *testing.T) {
	t.Helper()
	feed := b.step(t, "createCalendarFeed", "POST", "/calendar-feeds", `{"name":"All boats"}`)
	b.step(t, "getCalendarFeed", "GET", "/calendar-feeds/"+feed, "")
	b.step(t, "listCalendarFeeds", "GET", "/calendar-feeds?limit=10", "")
	var created struct{ URL string }
	if err := json.Unmarshal(b.client.want(t, http.StatusCreated, "POST", "/calendar-feeds", `{"name":"Read"}`).Body, &created); err != nil {
		t.Fatal(err)
	}
	path := created.URL[strings.LastIndex(created.URL, "/calendar/"):]
	a := b.client.want(t, http.StatusOK, "GET", path, "")
	const first = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n"
	if got := a.Header.Get("Content-Type"); got != "text/calendar; charset=utf-8" || !strings.HasPrefix(string(a.Body), first) {
		t.Fatalf("%s: %s, %.40q", path, got, a.Body)
	}
	body, err := json.Marshal(first + "…")
	if err != nil {
		t.Fatal(err)
	}
	b.compare(t, "getCalendar", example{
		Request:  exampleRequest{Method: http.MethodGet, Path: exampleCalendar},
		Response: exampleResponse{Status: a.Status, Body: body},
	})
	b.step(t, "deleteCalendarFeed", "DELETE", "/calendar-feeds/"+feed, "")
}

// closure creates the examples of closures. They are the last ones, so that the other examples do not change.
func (b *book) closure(t *testing.T, unit string) {
	t.Helper()
	closure := b.step(t, "createClosure", "POST", "/closures", fmt.Sprintf(`{"name":"Engine check","unit_ids":[%q],"date_from":"2027-11-01","date_to":"2027-11-03"}`, unit))
	b.step(t, "getClosure", "GET", "/closures/"+closure, "")
	b.step(t, "updateClosure", "PATCH", "/closures/"+closure, `{"date_to":"2027-11-02"}`)
	b.step(t, "listClosures", "GET", "/closures?from=2027-11-01&to=2027-11-30", "")
	b.step(t, "deleteClosure", "DELETE", "/closures/"+closure, "")
}

// requestLog creates the examples of the request log: the newest request about a booking, its cancellation.
func (b *book) requestLog(t *testing.T, booking string) {
	t.Helper()
	list := "/request-logs?object_id=" + booking + "&route=/bookings/%7Bid%7D/cancel"
	await(t, "the cancellation is logged", func() bool { return len(b.client.list(t, list)) == 1 })
	b.step(t, "listRequestLogs", "GET", list, "")
	b.step(t, "getRequestLog", "GET", "/request-logs/"+b.client.list(t, list)[0]["id"].(string), "")
}

// pdf creates the example of a document, which contains its first bytes.
func (b *book) pdf(t *testing.T, operation, path string) {
	t.Helper()
	a := b.client.want(t, http.StatusOK, "GET", path, "")
	const magic = "%PDF-1."
	if got := a.Header.Get("Content-Type"); got != "application/pdf" || !strings.HasPrefix(string(a.Body), magic) {
		t.Fatalf("%s: %s, %.20q", operation, got, a.Body)
	}
	b.compare(t, operation, example{
		Request:  exampleRequest{Method: http.MethodGet, Path: path},
		Response: exampleResponse{Status: a.Status, Body: json.RawMessage(`"` + magic + `…"`)},
	})
}

func (b *book) events(t *testing.T, booking, endpoint string) {
	t.Helper()
	deliveries := "/webhook-endpoints/" + endpoint + "/deliveries"
	await(t, "all deliveries of the booking", func() bool { return len(b.client.list(t, deliveries+"?status=succeeded")) == 4 })
	events := b.client.list(t, "/events?object_id="+booking+"&sort=updated_at")
	if len(events) != 4 {
		t.Fatalf("%d events of the booking, want created, two updated, cancelled", len(events))
	}
	first := events[0]["id"].(string)
	b.step(t, "listEvents", "GET", "/events?object_id="+booking+"&limit=1", "")
	b.step(t, "getEvent", "GET", "/events/"+first, "")
	b.stream(t, "/events/stream?type=booking.updated", first)
	delivery := b.client.list(t, deliveries+"?event_type=booking.created")[0]["id"].(string)
	b.step(t, "listDeliveries", "GET", deliveries+"?event_type=booking.created", "")
	b.step(t, "retryDelivery", "POST", deliveries+"/"+delivery+"/retry", `{}`)
	b.step(t, "testWebhookEndpoint", "POST", "/webhook-endpoints/"+endpoint+"/test", `{"type":"booking.created"}`)
	b.step(t, "rotateWebhookSecret", "POST", "/webhook-endpoints/"+endpoint+"/rotate-secret", `{"previous_secret_expires_in":3600}`)
	from := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	b.step(t, "resendEvent", "POST", "/events/"+first+"/resend", fmt.Sprintf(`{"endpoint_id":%q}`, endpoint))
	b.step(t, "replayEvents", "POST", "/events/replay", fmt.Sprintf(`{"endpoint_id":%q,"from":%q,"types":["booking.created"]}`, endpoint, from))
}

func (b *book) clock(t *testing.T) {
	t.Helper()
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	b.step(t, "setTestClock", "POST", "/test-clock", fmt.Sprintf(`{"now":%q}`, tomorrow))
	b.step(t, "getTestClock", "GET", "/test-clock", "")
	b.step(t, "deleteTestClock", "DELETE", "/test-clock", "")
}

// export creates the example of an export. It exports a customer with an invoice after their events arrived.
func (b *book) export(t *testing.T) {
	t.Helper()
	customer := b.client.want(t, http.StatusCreated, "POST", "/customers", `{"first_name":"Alan","last_name":"Turing","email":"alan@example.com"}`).id(t)
	invoice := b.client.want(t, http.StatusCreated, "POST", "/invoices", fmt.Sprintf(
		`{"customer_id":%q,"line_items":[{"description":"Dry bag","quantity":1,"unit_amount":{"amount":2500,"currency":"USD"}}]}`, customer)).id(t)
	for _, object := range []string{customer, invoice} {
		await(t, "the event of "+object, func() bool { return len(b.client.list(t, "/events?object_id="+object)) == 1 })
	}
	b.step(t, "exportCustomer", "GET", "/customers/"+customer+"/export", "")
}

// book creates examples and compares them with the folder proto/examples.
type book struct {
	client  *client
	masks   *masks
	created map[string]bool
}

// example is the format of a file in proto/examples.
type example struct {
	Request  exampleRequest  `json:"request"`
	Response exampleResponse `json:"response"`
}

type exampleRequest struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"` // in addition to Authorization and Content-Type
	Body    json.RawMessage   `json:"body,omitempty"`
}

type exampleResponse struct {
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body,omitempty"` // a text if the response is not JSON
}

// capitals finds the capital letters of an operationId.
var capitals = regexp.MustCompile(`[A-Z]`)

// step creates the example of an operation and returns the id in its response.
func (b *book) step(t *testing.T, operation, method, path, body string) (id string) {
	t.Helper()
	e := example{Request: exampleRequest{Method: method, Path: path, Body: json.RawMessage(body)}}
	key := ""
	if method == http.MethodPost || method == http.MethodPatch {
		key = strings.ToLower(capitals.ReplaceAllString(operation, "-$0")) + "-1"
		e.Request.Headers = map[string]string{"Idempotency-Key": key}
	}
	b.masks.begin()
	a := b.client.do(t, method, path, body, key)
	if a.Status/100 != 2 {
		t.Fatalf("%s: %d %s", operation, a.Status, a.Body)
	}
	e.Response = exampleResponse{Status: a.Status, Body: a.Body}
	b.compare(t, operation, e)
	if a.Status == http.StatusNoContent {
		return ""
	}
	var resource struct{ ID string }
	a.decode(t, &resource)
	return resource.ID
}

// stream creates the example of the stream: its first event after the given one.
func (b *book) stream(t *testing.T, path, after string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.client.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.client.key)
	req.Header.Set("Last-Event-ID", after)
	b.masks.begin()
	res, err := httpClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var event strings.Builder
	for lines := bufio.NewScanner(res.Body); lines.Scan() && !strings.Contains(event.String(), "\ndata: "); {
		if name, _, _ := strings.Cut(lines.Text(), ":"); name == "id" || name == "event" || name == "data" {
			event.WriteString(lines.Text() + "\n")
		}
	}
	body, err := json.Marshal(event.String() + "\n")
	if err != nil {
		t.Fatal(err)
	}
	b.compare(t, "streamEvents", example{
		Request:  exampleRequest{Method: http.MethodGet, Path: path, Headers: map[string]string{"Last-Event-ID": after}},
		Response: exampleResponse{Status: res.StatusCode, Body: body},
	})
}

// compare compares an example with its file, or writes the file.
func (b *book) compare(t *testing.T, operation string, e example) {
	t.Helper()
	b.created[operation] = true
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(e); err != nil {
		t.Fatalf("%s: %v", operation, err)
	}
	got := b.masks.hide(out.String())
	file := filepath.Join("../../../../proto/examples", operation+".json")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs from its example; if that is right, run go test -run TestExamples -update and make gen\ngot  %s\nwant %s", operation, got, want)
	}
}

// masks replaces values that differ in each run: ids, times of this run, secrets, addresses. The same value has the same
// replacement in all examples.
type masks struct {
	fixed    *strings.Replacer
	known    map[string]string
	count    map[string]int // ids by prefix
	began    time.Time      // start of the step
	pretends time.Time      // start of the step in the examples
}

func newMasks(slug, receiver string) *masks {
	return &masks{
		fixed: strings.NewReplacer(slug, "harbour-kayaks", receiver, "https://www.example.com/hooks/bookings", `"limit": 1000000`, `"limit": 600`),
		known: map[string]string{}, count: map[string]int{}, pretends: time.Date(2027, 3, 1, 15, 0, 0, 0, time.UTC),
	}
}

// begin starts a step. Each step is one minute after the previous one.
func (m *masks) begin() {
	m.began, m.pretends = time.Now(), m.pretends.Add(time.Minute)
}

var (
	anyID      = regexp.MustCompile(`\b(?:bk|cu|ld|qt|inv|pay|rf|srv|un|pkg|hr|cf|cl|cn|tn|we|evt|whd|key|req)_[0-9a-z]{26}\b`)
	anyIntent  = regexp.MustCompile(`\bpi_[0-9A-Za-z]{10,}(?:_secret_[0-9A-Za-z]+)?`)
	anyRefund  = regexp.MustCompile(`\bre_[0-9A-Za-z]{10,}`)
	anyInstant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z`)
	anySecret  = regexp.MustCompile(`whsec_[A-Za-z0-9+/=_-]+`)
	anyFeed    = regexp.MustCompile(`http://[^"]+/calendar/[a-z2-7]{32}\.ics`)
	anyCursor  = regexp.MustCompile(`"next_cursor": "[^"]+"`)
	anyTook    = regexp.MustCompile(`"duration_ms": \d+`)
)

func (m *masks) hide(text string) string {
	text = anyID.ReplaceAllStringFunc(text, func(id string) string {
		prefix, _, _ := strings.Cut(id, "_")
		return m.once(id, func() string {
			m.count[prefix]++
			return fmt.Sprintf("%s_01k0%022d", prefix, m.count[prefix])
		})
	})
	text = anyIntent.ReplaceAllStringFunc(text, func(found string) string {
		id, _, secret := strings.Cut(found, "_secret_")
		masked := m.once(id, func() string {
			m.count["pi"]++
			return fmt.Sprintf("pi_3PaymentIntent%07d", m.count["pi"])
		})
		if secret {
			masked += "_secret_thisIsNotASecret"
		}
		return masked
	})
	text = anyRefund.ReplaceAllStringFunc(text, func(id string) string {
		return m.once(id, func() string {
			m.count["re"]++
			return fmt.Sprintf("re_3Refund%07d", m.count["re"])
		})
	})
	text = anyInstant.ReplaceAllStringFunc(text, func(instant string) string {
		at, err := time.Parse(time.RFC3339, instant)
		if since := at.Sub(m.began); err == nil && since.Abs() < 15*24*time.Hour {
			return m.once(instant, func() string { return m.pretends.Add(since.Round(time.Minute)).Format(time.RFC3339) })
		}
		return instant
	})
	text = anySecret.ReplaceAllString(text, "whsec_this-is-not-a-secret")
	text = anyFeed.ReplaceAllString(text, "https://api.example.com/api/v1"+exampleCalendar)
	text = anyCursor.ReplaceAllString(text, `"next_cursor": "text-for-the-next-page"`)
	return m.fixed.Replace(anyTook.ReplaceAllString(text, `"duration_ms": 12`))
}

// once returns the earlier replacement of a value.
func (m *masks) once(value string, mask func() string) string {
	if m.known[value] == "" {
		m.known[value] = mask()
	}
	return m.known[value]
}
