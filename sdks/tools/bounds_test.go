package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	holdfast "holdfast.dev/sdks/go"
)

// The characters that take the most bytes in JSON and in YAML.
var worst = []string{"\x01", "😀", "\n", `"`, "<"}

// TestObjectsAreBounded renders the largest objects that the API has.
func TestObjectsAreBounded(t *testing.T) {
	t.Parallel()
	v := view{time.UTC}
	for _, c := range worst {
		text := func(length int) string { return strings.Repeat(c, length) }
		person := holdfast.Customer{ID: "cu_01k00000000000000000000001", Name: text(201), Email: holdfast.Ptr(text(255)), Phone: holdfast.Ptr(text(50)), Company: holdfast.Ptr(text(200))}
		long, price := holdfast.Ptr(text(5000)), holdfast.Money{Amount: 99_999_999_999, Currency: "USD"}
		items := slices.Repeat([]holdfast.LineItem{{Description: text(5000), Quantity: 10000, UnitAmount: price, DiscountAmount: price, Taxes: slices.Repeat([]holdfast.Tax{{Name: text(50), Rate: "99.9999"}}, 3)}}, 100)
		payments := slices.Repeat([]holdfast.InvoicePayment{{ID: "pay_01k00000000000000000000001", Amount: price, AmountRefunded: price, Reference: holdfast.Ptr(text(200))}}, 200)
		many := slices.Repeat([]string{"inv_01k00000000000000000000001"}, 100)
		booking := holdfast.Booking{
			ID: "bk_01k00000000000000000000001", Notes: long, EventType: holdfast.Ptr(text(100)), Customer: &person, InvoiceIDs: many, TotalAmount: price, GrossAmount: price,
			DepositAmount: price, AmountPaid: price, AmountDue: price, AmountRefunded: price, AmountCredited: price, Cancellation: &holdfast.Cancellation{Reason: long},
			PackageSnapshot: &holdfast.PackageSnapshot{Name: text(200)},
		}
		quote := holdfast.Quote{
			Notes: long, Terms: long, DeclineReason: long, LineItems: items, Customer: &person, InvoiceIDs: many, TotalAmount: price, DepositAmount: price,
		}
		invoice := holdfast.Invoice{
			Notes: long, LineItems: items, Payments: payments, Customer: &person, TotalAmount: price, AmountPaid: price, AmountRefunded: price, AmountCredited: price, AmountDue: price,
		}
		lead := holdfast.Lead{
			FirstName: text(100), LastName: holdfast.Ptr(text(100)), Email: holdfast.Ptr(text(255)), Company: holdfast.Ptr(text(200)), Message: long,
			LostReason: long, QuoteIDs: many, EventType: holdfast.Ptr(text(100)), Source: holdfast.Ptr(text(100)),
		}
		for name, object := range map[string]any{
			"booking": v.booking(booking, longText), "quote": v.wholeQuote(quote), "invoice": v.wholeInvoice(invoice), "lead": v.lead(lead, longText), "customer": v.customer(person),
		} {
			plain, structured, err := render(written{Result: v.one(object)})
			if err != nil {
				t.Errorf("%s with %q: %v", name, c, err)
			}
			if strings.Contains(plain, "\x01") || strings.Contains(string(structured), `\u0001`) {
				t.Errorf("%s contains control characters", name)
			}
		}
	}
	if i := v.wholeInvoice(holdfast.Invoice{
		TotalAmount: holdfast.Money{Currency: "USD"}, LineItems: make([]holdfast.LineItem, 100),
		Payments: []holdfast.InvoicePayment{11: {ID: "pay_newest"}},
	}); i.OmitsLines != 80 || i.OmitsPayments != 2 || i.Payments[9].ID != "pay_newest" {
		t.Errorf("%+v", i)
	}
}

// TestSlotsAreBounded checks that the free slots of a result are bounded, and that it says where to continue.
func TestSlotsAreBounded(t *testing.T) {
	t.Parallel()
	v := view{time.UTC}
	day := func(date string, units, slots int) holdfast.AvailabilityDay {
		d := holdfast.AvailabilityDay{Date: date}
		for u := range units {
			unit := holdfast.AvailabilityUnit{UnitID: fmt.Sprint("un_", u), Name: strings.Repeat("😀", 200)}
			unit.Slots = append(unit.Slots, holdfast.AvailabilitySlot{Status: holdfast.AvailabilitySlotStatusBooked})
			for range slots {
				unit.Slots = append(unit.Slots, holdfast.AvailabilitySlot{Status: holdfast.AvailabilitySlotStatusAvailable})
			}
			d.Units = append(d.Units, unit)
		}
		return d
	}
	tests := map[string]struct {
		days  []holdfast.AvailabilityDay
		shown int
		more  string
	}{
		"all":            {[]holdfast.AvailabilityDay{day("2031-07-05", 2, 50), day("2031-07-06", 2, 50)}, 200, ""},
		"until a day":    {[]holdfast.AvailabilityDay{day("2031-07-05", 2, 50), day("2031-07-06", 2, 51)}, 100, "date_from 2031-07-06"},
		"part of a day":  {[]holdfast.AvailabilityDay{day("2031-07-05", 3, 90), day("2031-07-06", 1, 1)}, 200, "unit_id or service_id"},
		"then full days": {[]holdfast.AvailabilityDay{day("2031-07-05", 2, 100), day("2031-07-06", 0, 0), day("2031-07-07", 1, 1)}, 200, "date_from 2031-07-07"},
	}
	for name, test := range tests {
		result := v.free(test.days, maxSlots)
		shown := 0
		for _, d := range result.Days {
			for _, unit := range d.Units {
				shown += len(unit.Slots)
			}
		}
		if shown != test.shown || !strings.Contains(result.More, test.more) || (test.more == "") != (result.More == "") {
			t.Errorf("%s: %d slots, %q", name, shown, result.More)
		}
	}
	if fits(v.free([]holdfast.AvailabilityDay{day("2031-07-05", 200, 1)}, maxSlots)) {
		t.Error("the largest names fit, so nothing tests that fewer slots are shown if they do not")
	}
	if result := v.freeThatFits([]holdfast.AvailabilityDay{day("2031-07-05", 200, 1)}); !fits(result) || len(result.Days[0].Units) != 50 || result.More == "" {
		t.Errorf("%d units, %q", len(result.Days[0].Units), result.More)
	}
}

// request is a call without arguments.
func request() *mcp.CallToolRequest {
	return &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Arguments: json.RawMessage(`{}`)}}
}

// TestCallsAtTheSameTime checks that no more than maxCalls run, and that the others wait.
func TestCallsAtTheSameTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, started, done := make(chan struct{}), make(chan struct{}, 100), make(chan bool)
		d := read("slow", "", func(context.Context, none) (any, error) {
			started <- struct{}{}
			<-release
			return none{}, nil
		})
		handler := (&toolbox{running: make(chan struct{}, maxCalls)}).handler(d)
		const calls = maxCalls + 3
		for range calls {
			go func() {
				result, err := handler(t.Context(), request())
				done <- err == nil && !result.IsError
			}()
		}
		synctest.Wait()
		if len(started) != maxCalls {
			t.Errorf("%d calls run, want %d", len(started), maxCalls)
		}
		close(release)
		for range calls {
			if !<-done {
				t.Error("a call failed")
			}
		}
	})
}

// TestCallsEnd checks that a call ends before the client gives up, and what an assistant is told to do then.
func TestCallsEnd(t *testing.T) {
	t.Parallel()
	for e, want := range map[effect]string{reads: "Repeat the call later.", adds: "same request_key"} {
		synctest.Test(t, func(t *testing.T) {
			d := read("slow", "", func(ctx context.Context, _ none) (any, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
			d.effect = e
			start := time.Now()
			result, err := (&toolbox{running: make(chan struct{}, maxCalls)}).handler(d)(t.Context(), request())
			if err != nil || !result.IsError {
				t.Fatalf("%v %v", result, err)
			}
			text, _ := result.Content[0].(*mcp.TextContent)
			if took := time.Since(start); took != callTimeout || !strings.Contains(text.Text, want) || !strings.Contains(text.Text, "no_response") {
				t.Errorf("after %v: %s", took, text.Text)
			}
		})
	}
}

// TestIdempotencyKey checks the form of the keys. If it changes, a call that is repeated after an update has a second effect.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	const want = "mcp-hold_slot-2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683"
	if got := idempotencyKey("hold_slot", "key"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if idempotencyKey("hold_slot", "key") == idempotencyKey("cancel_booking", "key") {
		t.Error("two tools have the same key")
	}
	if got := idempotencyKey(strings.Repeat("x", 30), strings.Repeat("😀", 100)); len(got) > 255 {
		t.Errorf("the key has %d characters", len(got))
	}
}
