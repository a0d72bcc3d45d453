package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/scenario/platform"
	"holdfast.dev/sdks/scenario/proxy"
	"holdfast.dev/sdks/tools"

	"holdfast.dev/sdks/cli/internal/operations"
)

// assistant is a session of the official client with a server.
type assistant struct {
	t *testing.T
	*mcp.ClientSession
}

// connect starts a session.
func connect(t *testing.T, transport mcp.Transport) assistant {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return assistant{t, session}
}

// assist runs `holdfast mcp` and talks to it over standard input and output.
func (c tool) assist(args ...string) assistant {
	c.t.Helper()
	cmd := exec.Command(binary, append([]string{"mcp"}, args...)...)
	cmd.Env = c.env
	return connect(c.t, &mcp.CommandTransport{Command: cmd})
}

// inMemory starts a server in this process that can change data.
func inMemory(t *testing.T, baseURL, key string, options ...holdfast.ClientOption) assistant {
	t.Helper()
	client, err := holdfast.New(append(options, holdfast.WithBaseURL(baseURL), holdfast.WithAPIKey(key))...)
	if err != nil {
		t.Fatal(err)
	}
	server, err := tools.New(t.Context(), tools.Config{Client: client, Writes: true, Remedies: operations.Remedies, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	here, there := mcp.NewInMemoryTransports()
	go func() { _ = server.Run(context.WithoutCancel(t.Context()), there) }() // the client ends it
	return connect(t, here)
}

type args map[string]any

// toolResult is the result of a tool.
type toolResult struct {
	text   string
	failed bool
	values map[string]any // the structured content
}

// call calls a tool.
func (a assistant) call(name string, arguments args) toolResult {
	a.t.Helper()
	result, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if !ok || len(result.Content) != 1 {
		a.t.Fatalf("%s: %v", name, result.Content)
	}
	values, _ := result.StructuredContent.(map[string]any)
	return toolResult{text.Text, result.IsError, values}
}

// ok calls a tool that must succeed.
func (a assistant) ok(name string, arguments args) toolResult {
	a.t.Helper()
	r := a.call(name, arguments)
	if r.failed {
		a.t.Fatalf("%s: %s", name, r.text)
	}
	return r
}

// fails calls a tool that must fail, with all texts in its error.
func (a assistant) fails(name string, arguments args, texts ...string) toolResult {
	a.t.Helper()
	r := a.call(name, arguments)
	if !r.failed {
		a.t.Errorf("%s did not fail: %s", name, r.text)
	}
	r.has(a.t, texts...)
	return r
}

// has checks the text for humans.
func (r toolResult) has(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(r.text, text) {
			t.Errorf("no %q in:\n%s", text, r.text)
		}
	}
}

// at returns a value of the structured content: result.object.id, or rows.0.id.
func (r toolResult) at(path string) any {
	var value any = r.values
	for name := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// id returns the ID of the object that a tool has changed.
func (r toolResult) id() string {
	id, _ := r.at("result.object.id").(string)
	return id
}

// is compares a value of the structured content.
func (r toolResult) is(t *testing.T, path string, want any) {
	t.Helper()
	if got := r.at(path); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s is %v, want %v, in\n%s", path, got, want, r.text)
	}
}

// boats is what the tests book: a unit with four slots on Saturdays.
type boats struct{ service, unit, pack string }

func newBoats(c tool) boats {
	c.t.Helper()
	service := c.ok("services", "create", "--name", "Kayak tour", "--duration-minutes", "120", "--jq", ".id")
	unit := c.ok("units", "create", "--name", "Kayak of "+c.t.Name(), "--service-ids", service, "--opening-hours", `{"sat":[["09:00","17:00"]]}`, "--jq", ".id")
	pack := c.ok("packages", "create", "--name", "Two hours", "--service-id", service, "--base-price.amount", "8000", "--base-price.currency", "USD",
		"--deposit-type", "percentage", "--deposit-value", "2500", "--jq", ".id")
	return boats{service, unit, pack}
}

// TestMCPBooking finds a customer and a free slot, holds it, moves it, confirms it and cancels it, with the real command line.
func TestMCPBooking(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	b := newBoats(c)
	a := c.assist("--allow-writes")
	if in := a.InitializeResult().Instructions; !strings.Contains(in, "Demo Boats, in test mode") || !strings.Contains(in, "America/New_York") {
		t.Errorf("%s", in)
	}
	customer := a.ok("create_customer", args{"first_name": "Zoë", "last_name": "Quincey", "email": "zoe@example.com", "request_key": b.unit}).id()
	a.ok("find_customers", args{"query": "zoe quin"}).has(t, customer, "Zoë Quincey", "zoe@example.com")

	free := a.ok("find_free_slots", args{"date_from": "2031-07-05", "date_to": "2031-07-05", "service_id": b.service})
	free.has(t, "America/New_York", "09:00-11:00", "15:00-17:00", "80.00 USD", "Saturday")
	free.is(t, "days.0.units.0.slots.0.starts_at", "2031-07-05T09:00:00-04:00")
	free.is(t, "days.0.price_from.amount_minor", 8000)

	hold := args{"date": "2031-07-05", "start_time": "09:00", "unit_id": b.unit, "package_id": b.pack, "customer_id": customer, "hold_minutes": 20, "request_key": "hold"}
	held := a.ok("hold_slot", hold)
	held.has(t, "status: pending", "Sat 2031-07-05 09:00 -04:00", "total: 80.00 USD", "deposit: 20.00 USD")
	held.is(t, "result.object.total.amount_minor", 8000)
	held.is(t, "result.object.starts_at", "2031-07-05T09:00:00-04:00")
	if held.at("result.object.hold_expires_at") == nil {
		t.Error("the hold does not expire")
	}
	again := c.assist("--allow-writes").ok("hold_slot", hold) // another process
	if again.id() != held.id() || again.at("replayed") == nil || held.at("replayed") != nil {
		t.Errorf("the same request_key made %s and %s (%v)", held.id(), again.id(), again.at("replayed"))
	}
	hold["guest_count"] = 3
	a.fails("hold_slot", hold, "idempotency_mismatch", "new request_key")
	hold["request_key"] = "other"
	taken := a.fails("hold_slot", hold, "slot_unavailable", "11:00", b.unit, "find_free_slots", "req_")
	taken.is(t, "status", 409)
	taken.is(t, "free_instead.slots.0.start_time", "11:00")
	taken.is(t, "free_instead.slots.0.unit_id", b.unit)
	taken.is(t, "free_instead.time_zone", "America/New_York")
	why := a.ok("explain_slot", args{"unit_id": b.unit, "date": "2031-07-05", "start_time": "09:00"})
	why.is(t, "reason", "held")
	why.is(t, "free_instead.slots.0.start_time", "11:00")
	a.ok("explain_slot", args{"unit_id": b.unit, "date": "2031-03-09", "start_time": "02:30"}).is(t, "reason", "dst_gap")
	a.ok("explain_slot", args{"unit_id": b.unit, "date": "2031-07-05", "start_time": "11:00"}).is(t, "available", true)

	moved := a.ok("move_booking", args{"booking_id": held.id(), "date": "2031-07-12", "start_time": "13:00", "request_key": "move"})
	moved.has(t, "Sat 2031-07-12 13:00 -04:00", "Sat 2031-07-12 15:00 -04:00", "total: 80.00 USD")
	a.fails("confirm_booking", args{"booking_id": held.id(), "version": 1, "request_key": "old"}, "version_mismatch", "get_record")
	a.ok("confirm_booking", args{"booking_id": held.id(), "version": moved.at("result.object.version"), "request_key": "confirm"}).has(t, "status: confirmed")
	a.ok("list_bookings", args{"unit_id": b.unit, "date_from": "2031-07-12", "date_to": "2031-07-12"}).has(t, held.id(), "Zoë Quincey")
	a.ok("cancel_booking", args{"booking_id": held.id(), "reason": "Rain", "request_key": "cancel"}).has(t, "status: cancelled", "Rain")
	number, _ := moved.at("result.object.number").(string)
	record := a.ok("get_record", args{"id": strings.ToLower(number)})
	record.is(t, "object.id", held.id())
	record.is(t, "object.status", "cancelled")
	a.fails("confirm_booking", args{"booking_id": held.id(), "request_key": "late"}, "invalid_status_transition", "A booking that is cancelled")
	if got := c.ok("bookings", "list", "--unit-id", b.unit, "--jq", ".data | length"); got != "1" {
		t.Errorf("%s bookings", got)
	}
}

// TestMCPMoveRetainsLength checks that a booking with an end of its own keeps its length.
func TestMCPMoveRetainsLength(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	a := inMemory(t, shared.BaseURL, shared.Key)
	unit := c.ok("units", "create", "--name", "Hall", "--jq", ".id")
	wedding := a.ok("hold_slot", args{"date": "2031-08-02", "start_time": "14:00", "end_time": "23:00", "unit_id": unit, "request_key": unit})
	a.ok("move_booking", args{"booking_id": wedding.id(), "start_time": "18:00", "request_key": unit}).has(t, "Sat 2031-08-02 18:00 -04:00", "Sun 2031-08-03 03:00 -04:00")
	a.ok("hold_slot", args{"date": "2031-08-04", "start_time": "10:00", "end_time": "12:00", "unit_id": unit, "request_key": unit + "2"})
	blocked := a.fails("move_booking", args{"booking_id": wedding.id(), "date": "2031-08-04", "start_time": "09:00", "request_key": unit + "3"}, "slot_unavailable")
	if blocked.at("free_instead") == nil {
		t.Errorf("%s", blocked.text)
	}
	festival := c.ok("bookings", "create", "--starts-at", "2031-09-05T10:00:00-04:00", "--ends-at", "2031-09-06T16:00:00-04:00", "--unit-id", unit, "--jq", ".id")
	a.ok("move_booking", args{"booking_id": festival, "start_time": "11:00", "request_key": "f"}).has(t, "Fri 2031-09-05 11:00 -04:00", "Sat 2031-09-06 17:00 -04:00")
	a.ok("move_booking", args{"booking_id": festival, "date": "2031-09-12", "request_key": "g"}).has(t, "Fri 2031-09-12 11:00 -04:00", "Sat 2031-09-13 17:00 -04:00")
	a.fails("move_booking", args{"booking_id": wedding.id(), "request_key": "x"}, "date: is required, unless you give start_time or unit_id")
}

// TestMCPReadOnly checks that a server without --allow-writes neither offers nor carries out changes.
func TestMCPReadOnly(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	a := c.assist()
	list, err := a.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s is offered", tool.Name)
		}
	}
	if len(list.Tools) != 11 {
		t.Errorf("%d tools", len(list.Tools))
	}
	a.fails("create_customer", args{"first_name": "Nobody", "email": "readonly@example.com", "request_key": "1"}, "read-only", "holdfast mcp --allow-writes")
	if got := c.ok("customers", "list", "--email", "readonly@example.com", "--jq", ".data | length"); got != "0" {
		t.Errorf("%s customers", got)
	}
	a.ok("get_tenant", nil).is(t, "writes_allowed", false)
}

// TestMCPLive checks that live data needs --live or a profile that the command line names.
func TestMCPLive(t *testing.T) {
	t.Parallel()
	live := withKey(t, shared.Env["DEMO_LIVE_KEY"])
	live.fails(2, []string{"mcp"}, "live data of Demo Boats", "--live")
	withKey(t, shared.Key).fails(2, []string{"mcp", "--live"}, "test data of Demo Boats")
	live.assist("--live").ok("get_tenant", nil).is(t, "mode", "live")

	c := bare(t)
	if r := c.run(shared.Env["DEMO_LIVE_KEY"]+"\n", "login", "--api-key", "--base-url", shared.BaseURL, "--profile", "shop"); r.code != 0 {
		t.Fatal(r.err)
	}
	c.fails(2, []string{"mcp"}, "--live")                               // the current profile
	c.with("HOLDFAST_PROFILE=shop").fails(2, []string{"mcp"}, "--live") // named, but not on the command line
	c.assist("--profile", "shop").ok("get_tenant", nil).is(t, "mode", "live")
	bare(t).fails(4, []string{"mcp"}, "not logged in")
}

// TestMCPQuote converts a lead, quotes, accepts, and records the payment of the invoice.
func TestMCPQuote(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	b := newBoats(c)
	a := inMemory(t, shared.BaseURL, shared.Key)
	lead := c.ok("leads", "create", "--first-name", "Lea", "--email", b.unit+"@example.com", "--event-date", "2031-07-19", "--budget.amount", "12345", "--budget.currency", "USD", "--jq", ".id")
	a.ok("find_leads", args{"query": b.unit, "status": "new"}).has(t, lead, "123.45 USD", `2031-07-19`)
	converted := a.ok("convert_lead", args{"lead_id": lead, "request_key": lead})
	converted.has(t, "status: converted")
	customer := converted.at("result.object.customer_id")
	quote := a.ok("create_quote", args{
		"customer_id": customer, "unit_id": b.unit, "package_id": b.pack, "date": "2031-07-19", "start_time": "11:00", "request_key": lead, "deposit": "30",
		"lines": []args{{"description": "Tour", "quantity": 2, "unit_price": "40.50", "tax_rate_bps": 1000}},
	})
	quote.has(t, "status: draft", "total: 89.10 USD", "deposit: 30.00 USD", "unit_price: 40.50 USD")
	a.fails("accept_quote", args{"quote_id": quote.id(), "request_key": "early"}, "invalid_status_transition")
	a.ok("send_quote", args{"quote_id": quote.id(), "request_key": "send" + lead}).has(t, "status: sent")
	accept := args{"quote_id": quote.id(), "request_key": "accept" + lead}
	accepted := a.ok("accept_quote", accept)
	accepted.has(t, "status: accepted", "bk_", "inv_")
	if again := a.ok("accept_quote", accept); again.at("replayed") == nil || again.at("result.object.booking_id") != accepted.at("result.object.booking_id") {
		t.Errorf("%s", again.text)
	}
	a.ok("list_quotes", args{"customer_id": customer, "status": "accepted"}).has(t, quote.id())
	due := a.ok("list_invoices", args{"customer_id": customer})
	due.has(t, "due: 30.00 USD", "Lea")
	due.is(t, "rows.0.due.amount_minor", 3000)
	invoice, _ := due.at("rows.0.id").(string)
	pay := args{"invoice_id": invoice, "amount": "30.00", "currency": "USD", "method": "cash", "reference": "R-1", "request_key": "pay" + lead}
	for name, amount := range map[string]string{"three decimals": "30.001", "text": "thirty", "exponent": "3e1", "nothing": ""} {
		wrong := args{"invoice_id": invoice, "amount": amount, "currency": "USD", "method": "cash", "request_key": name}
		a.fails("record_payment", wrong, "amount: must be a decimal number with at most 2 decimals in USD, such as 25.00")
	}
	a.ok("record_payment", pay).has(t, "status: paid", "due: 0.00 USD")
	a.ok("record_payment", pay)
	a.ok("get_record", args{"id": invoice}).is(t, "object.payments", "[map[amount:map[amount_minor:3000 currency:USD] id:"+fmt.Sprint(a.ok("get_record", args{"id": invoice}).at("object.payments.0.id"))+
		" method:cash paid_at:"+fmt.Sprint(a.ok("get_record", args{"id": invoice}).at("object.payments.0.paid_at"))+" reference:R-1]]")
	a.ok("list_invoices", args{"customer_id": customer}).is(t, "rows", "[]")
	a.ok("list_invoices", args{"customer_id": customer, "status": "all"}).has(t, invoice)

	taken := a.ok("create_quote", args{"customer_id": customer, "unit_id": b.unit, "package_id": b.pack, "date": "2031-07-19", "start_time": "11:00", "request_key": "2" + lead}).id()
	a.ok("send_quote", args{"quote_id": taken, "request_key": "send2" + lead})
	a.fails("accept_quote", args{"quote_id": taken, "request_key": "accept2" + lead}, "slot_unavailable", "free_instead").is(t, "free_instead.slots.0.start_time", "09:00")
}

// TestMCPErrors checks that an error names the argument, with the name that the tool uses.
func TestMCPErrors(t *testing.T) {
	t.Parallel()
	a := inMemory(t, shared.BaseURL, shared.Key)
	a.fails("hold_slot", args{"date": "July 5", "unit_id": "un_x", "request_key": "a"}, "invalid_request", "\n  date:", "req_")
	a.fails("hold_slot", args{"date": "2031-07-05", "start_time": "9 am", "unit_id": "un_x", "request_key": "b"}, "start_time:")
	a.fails("hold_slot", args{"date": "2031-07-05", "unit_id": "un_x", "hold_minutes": 50000, "request_key": "c"}, "hold_minutes: must be an integer from 1 to 43200")
	a.fails("hold_slot", args{"date": "2031-07-05", "unit_id": "un_x"}, "request_key: is required (text of at most 100 characters)")
	a.fails("list_bookings", args{"date_from": "tomorrow"}, "date_from:")
	a.fails("find_free_slots", args{"date_from": "2031-07-05", "date_to": "2031-08-05"}, "date_to: must be between date_from and 30 days later")
	a.fails("get_record", args{"id": "bk_01k00000000000000000000001"}, "booking_not_found", "Check the ID")
	a.fails("get_record", args{"id": "xx_1"}, "id: must start with bk_")
	a.fails("get_record", args{"id": "B-999999"}, "id: no booking, quote or invoice")
	a.fails("list_bookings", args{"cursor": "x"}, "invalid_cursor", "without cursor")
	if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "drop_tables"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("%v", err)
	}
}

// TestMCPLostResponse checks that a call whose response was lost can be repeated, and has one effect.
func TestMCPLostResponse(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	unit := c.ok("units", "create", "--name", "Lost", "--jq", ".id")
	p, err := proxy.Start(shared.BaseURL, []string{proxy.Pass, proxy.Pass, proxy.CutAfter, proxy.Pass})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	once := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // a transport repeats requests on connections that it has used before
	a := inMemory(t, p.URL, shared.Key, holdfast.WithDefaults(holdfast.WithMaxRetries(0)), holdfast.WithHTTPClient(once))
	hold := args{"date": "2031-07-05", "unit_id": unit, "request_key": unit}
	a.fails("hold_slot", hold, "no_response", "may have been made", "same request_key")
	a.ok("hold_slot", hold).has(t, "status: pending", "replayed")
	if got := c.ok("bookings", "list", "--unit-id", unit, "--jq", ".data | length"); got != "1" {
		t.Errorf("%s bookings", got)
	}
}

// TestMCPBounds checks that results are bounded in rows and in bytes, and that their cursors lead to all rows.
func TestMCPBounds(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	unit := c.ok("units", "create", "--name", "Bounds", "--jq", ".id")
	a := inMemory(t, shared.BaseURL, shared.Key)
	const total = 40
	for i := range total {
		a.ok("hold_slot", args{
			"date": fmt.Sprintf("2032-%02d-%02d", 1+i/20, 1+i%20), "unit_id": unit, "notes": strings.Repeat("😀", 5000), "event_type": strings.Repeat("😀", 100),
			"request_key": fmt.Sprint(unit, i),
		})
	}
	if first := a.ok("list_bookings", args{"unit_id": unit}); len(ids(first)) != 10 || first.at("more") == nil {
		t.Errorf("%d rows by default, %v", len(ids(first)), first.at("more"))
	}
	var seen []string
	list := args{"unit_id": unit, "limit": 50}
	for {
		r := a.ok("list_bookings", list)
		structured, err := json.Marshal(r.values)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.text) > 32<<10 || len(structured) > 32<<10 {
			t.Errorf("%d bytes of text, %d of structured content", len(r.text), len(structured))
		}
		r.has(t, "more characters)")
		seen = append(seen, ids(r)...)
		if r.at("next_cursor") == nil {
			break
		}
		list["cursor"] = r.at("next_cursor")
	}
	if n := len(seen); n != total || len(slices.Compact(slices.Sorted(slices.Values(seen)))) != total {
		t.Errorf("%d rows, want %d different ones", n, total)
	}
}

// ids returns the IDs of the rows.
func ids(r toolResult) []string {
	var all []string
	rows, _ := r.at("rows").([]any)
	for i := range rows {
		id, _ := r.at(fmt.Sprintf("rows.%d.id", i)).(string)
		all = append(all, id)
	}
	return all
}

// TestMCPCatalog lists what can be booked.
func TestMCPCatalog(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	b := newBoats(c)
	a := inMemory(t, shared.BaseURL, shared.Key)
	a.ok("list_catalog", args{"kind": "services", "limit": 50}).has(t, b.service)
	a.ok("list_catalog", args{"kind": "units", "service_id": b.service}).has(t, b.unit, "17:00")
	a.ok("list_catalog", args{"kind": "packages", "service_id": b.service}).has(t, b.pack, "80.00 USD", "deposit_bps: 2500")
	for _, id := range []string{b.service, b.unit, b.pack} {
		a.ok("get_record", args{"id": id}).is(t, "object.id", id)
	}
	a.fails("list_catalog", args{"kind": "services", "service_id": b.service}, "service_id: is only for units and packages")
	a.ok("get_tenant", nil).has(t, "Demo Boats", "America/New_York", "auto_confirm", "writes_allowed: true", "write:bookings")
}

// TestMCPFailures shows a failed payment and a failed delivery.
func TestMCPFailures(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key).with("STRIPE_URL="+shared.Env["STRIPE_URL"], "STRIPE_PUBLISHABLE_KEY="+shared.Env["STRIPE_PUBLISHABLE_KEY"])
	c.ok("trigger", "payment.failed")
	endpoint := c.ok("webhook-endpoints", "create", "--url", "http://127.0.0.1:9/hooks", "--event-types", "customer.created", "--jq", ".id")
	defer c.ok("webhook-endpoints", "delete", endpoint)
	c.ok("trigger", "customer.created")
	c.fails(3, []string{"customers", "create", "--first-name", "No", "--email", "no"}, "--email")
	a := inMemory(t, shared.BaseURL, shared.Key)
	await(t.Context(), t, "the failures", func() bool {
		r := a.ok("list_failures", args{"days": 1})
		return strings.Contains(r.text, "last_error") && strings.Contains(r.text, endpoint) && strings.Contains(r.text, "payment_intent_id") && strings.Contains(r.text, "POST /customers")
	})
	a.ok("list_failures", nil).has(t, "customer.created", "connection refused", "reason: generic_decline")
}

// TestMCPScopes checks that a credential with few scopes gets what it can read, and an error that names the missing scope.
func TestMCPScopes(t *testing.T) {
	t.Parallel()
	a := inMemory(t, shared.BaseURL, newKey(t, "read:bookings", "read:webhooks"))
	a.ok("list_bookings", args{"limit": 1})
	a.fails("find_customers", args{"query": "zoe"}, "insufficient_scope", "read:customers", "get_tenant shows the scopes").is(t, "status", 403)
	r := a.ok("list_failures", nil)
	for _, section := range []string{"payments: ", "refunds: "} {
		r.has(t, section+"The credential lacks")
	}
}

// newKey creates an API key with scopes.
func newKey(t *testing.T, scopes ...string) string {
	t.Helper()
	checkout, err := platform.Checkout()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(checkout, "bin", "identity"), "key", "create", "--tenant", "demo", "--mode", "test", "--scopes", strings.Join(scopes, ","))
	for name, value := range shared.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	key := regexp.MustCompile(`svc_test_\w+`).FindString(string(out))
	if err != nil || key == "" {
		t.Fatalf("%v: %s", err, out)
	}
	return key
}
