package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// moneyCase is one customer of a merchant on whose bookings steps are executed. A step is a word with arguments, such as
// "card 400" or "note@1 300 gateway"; @1 selects the second object of its kind, and no number the last one. Amounts are in minor
// units. A step whose object does not exist is skipped.
type moneyCase struct {
	merchant

	customer string
	day      string
	bank     sync.Mutex // of disputes and refunds that end
	mu       sync.Mutex // of the fields below, for concurrent clients
	packages, quotes, bookings, invoices,
	charges, refunds []string
	intents []intent
}

func (m merchant) moneyCase(t *testing.T) *moneyCase {
	t.Helper()
	c := &moneyCase{merchant: m, day: "2090-05-01"}
	if len(m.list(t, "/services?limit=1")) == 0 {
		m.want(t, http.StatusCreated, http.MethodPost, "/services", `{"name":"Tour","duration_minutes":60}`)
	}
	c.customer = m.insist(t, http.MethodPost, "/customers", `{"first_name":"Paula","email":"paula@example.com"}`, unique("customer"), http.StatusCreated).id(t)
	return c
}

// moneyStep is a step in a form that can be executed.
type moneyStep struct {
	word   string
	object int // -1: the last one
	args   []string
}

func parseMoneyStep(text string) moneyStep {
	fields := strings.Fields(text)
	word, number, found := strings.Cut(fields[0], "@")
	s := moneyStep{word, -1, fields[1:]}
	if found {
		s.object, _ = strconv.Atoi(number)
	}
	return s
}

// arg returns an argument; "" if the step does not have it.
func (s moneyStep) arg(n int) string {
	if n < len(s.args) {
		return s.args[n]
	}
	return ""
}

// of returns the object that the step selects, or "".
func (c *moneyCase) of(list *[]string, s moneyStep) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n := len(*list); {
	case s.object >= n || n == 0:
		return ""
	case s.object < 0:
		return (*list)[n-1]
	default:
		return (*list)[s.object]
	}
}

// add appends the object that a request created.
func (c *moneyCase) add(t *testing.T, list *[]string, a response) response {
	t.Helper()
	if a.Status == http.StatusCreated {
		c.mu.Lock()
		defer c.mu.Unlock()
		*list = append(*list, a.id(t))
	}
	return a
}

func (c *moneyCase) post(t *testing.T, path, body string) response {
	t.Helper()
	return c.do(t, http.MethodPost, path, body, unique("step"))
}

func (c *moneyCase) money(amount string) string {
	return fmt.Sprintf(`{"amount":%s,"currency":%q}`, amount, c.currency)
}

// taxSets contains the taxes of a line whose amount ends with a letter. Other lines have the default taxes of the tenant.
var taxSets = map[string]string{
	"a": `[{"name":"VAT","rate":"19"}]`, "b": `[{"name":"VAT","rate":"7"}]`, "c": `[{"name":"GST","rate":"5"},{"name":"QST","rate":"9.975"}]`, "d": `[]`,
}

// lines returns line items of the given unit amounts.
func (c *moneyCase) lines(amounts ...string) string {
	var list []string
	for _, amount := range amounts {
		number := strings.TrimRight(amount, "abcd")
		taxes := ""
		if set := amount[len(number):]; set != "" {
			taxes = `,"taxes":` + taxSets[set]
		}
		list = append(list, fmt.Sprintf(`{"description":"Tour","quantity":1,"unit_amount":%s%s}`, c.money(number), taxes))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// moneySteps executes a step by its word. The response is empty if nothing was requested.
var moneySteps = map[string]func(c *moneyCase, t *testing.T, s moneyStep) response{
	// package PRICE [DEPOSIT]: a booking of a new package.
	"package": func(c *moneyCase, t *testing.T, s moneyStep) response {
		c.newPackage(t, s)
		return c.add(t, &c.bookings, c.post(t, "/bookings", fmt.Sprintf(`{"customer_id":%q,"event_date":%q,"package_id":%q,"guest_count":1}`,
			c.customer, c.day, c.packages[len(c.packages)-1])))
	},
	// unpriced: a booking without a price.
	"unpriced": func(c *moneyCase, t *testing.T, _ moneyStep) response {
		return c.add(t, &c.bookings, c.post(t, "/bookings", fmt.Sprintf(`{"customer_id":%q,"event_date":%q}`, c.customer, c.day)))
	},
	// quote PRICE [DEPOSIT]: an accepted quote, with its booking and invoice.
	"quote": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.quote(t, fmt.Sprintf(`"line_items":%s,"deposit_amount":%s`, c.lines(s.arg(0)), c.money(cmp.Or(s.arg(1), "0"))))
	},
	// package-quote PRICE [DEPOSIT]: an accepted quote of a new package.
	"package-quote": func(c *moneyCase, t *testing.T, s moneyStep) response {
		c.newPackage(t, s)
		return c.quote(t, fmt.Sprintf(`"package_id":%q`, c.packages[len(c.packages)-1]))
	},
	// price@PACKAGE PRICE: another price of a package.
	"price": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.on(&c.packages, s, func(id string) response {
			return c.do(t, http.MethodPatch, "/packages/"+id, fmt.Sprintf(`{"base_price":%s}`, c.money(s.arg(0))), "")
		})
	},
	"guests": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.on(&c.bookings, s, func(id string) response {
			return c.do(t, http.MethodPatch, "/bookings/"+id, fmt.Sprintf(`{"guest_count":%s}`, s.arg(0)), "")
		})
	},
	"reprice": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.act(t, &c.bookings, s, "/bookings/%s/reprice", "")
	},
	"cancel": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.act(t, &c.bookings, s, "/bookings/%s/cancel", "{}")
	},
	// draft@BOOKING PRICE…, balance@BOOKING, own PRICE: a draft of an invoice; own has no booking.
	"draft": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.on(&c.bookings, s, func(id string) response {
			return c.add(t, &c.invoices, c.post(t, "/invoices", fmt.Sprintf(`{"customer_id":%q,"booking_id":%q,"line_items":%s}`, c.customer, id, c.lines(s.args...))))
		})
	},
	"balance": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.on(&c.bookings, s, func(id string) response {
			return c.add(t, &c.invoices, c.post(t, "/invoices", fmt.Sprintf(`{"customer_id":%q,"booking_id":%q,"kind":"balance"}`, c.customer, id)))
		})
	},
	"own": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.add(t, &c.invoices, c.post(t, "/invoices", fmt.Sprintf(`{"customer_id":%q,"line_items":%s}`, c.customer, c.lines(s.args...))))
	},
	"open": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.act(t, &c.invoices, s, "/invoices/%s/open", "")
	},
	"void": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.act(t, &c.invoices, s, "/invoices/%s/void", "")
	},
	"uncollectible": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.act(t, &c.invoices, s, "/invoices/%s/mark-uncollectible", "")
	},
	// cash@INVOICE AMOUNT: a payment in cash; reverse@INVOICE reverses the last one.
	"cash": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.act(t, &c.invoices, s, "/invoices/%s/record-payment", fmt.Sprintf(`{"amount":%s,"method":"cash"}`, c.money(s.arg(0))))
	},
	"reverse": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.on(&c.invoices, s, func(id string) response {
			list := read[moneyInvoice](t, c.client, "/invoices/"+id).Payments
			for _, p := range slices.Backward(list) {
				if p.Source == "manual" && p.ReversedAt == nil {
					return c.post(t, "/invoices/"+id+"/payments/"+p.ID+"/reverse", "")
				}
			}
			return response{}
		})
	},
	// note@INVOICE AMOUNT [REFUND], lines@INVOICE REFUND PRICE…: a credit note. The amount "rest" credits what is left.
	"note": func(c *moneyCase, t *testing.T, s moneyStep) response {
		amount := "null"
		if s.arg(0) != "rest" {
			amount = c.money(s.arg(0))
		}
		return c.act(t, &c.invoices, s, "/invoices/%s/credit-notes", fmt.Sprintf(`{"amount":%s,"refund":%q}`, amount, cmp.Or(s.arg(1), "none")))
	},
	"lines": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.act(t, &c.invoices, s, "/invoices/%s/credit-notes", fmt.Sprintf(`{"line_items":%s,"refund":%q}`, c.lines(s.args[1:]...), s.arg(0)))
	},
	// intent@BOOKING [AMOUNT] and card@BOOKING [AMOUNT] request a payment for a booking, pay@INVOICE [AMOUNT] for an invoice. card and
	// pay also confirm it and wait until payments shows it.
	"intent": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.on(&c.bookings, s, func(id string) response { return c.request(t, id, "", s.arg(0)) })
	},
	"card": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.on(&c.bookings, s, func(id string) response { return c.charge(t, c.request(t, id, "", s.arg(0)), cmp.Or(s.arg(1), "visa")) })
	},
	"pay": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.on(&c.invoices, s, func(id string) response {
			booking := read[struct {
				Booking string `json:"booking_id"`
			}](t, c.client, "/invoices/"+id).Booking
			if booking == "" {
				return response{}
			}
			return c.charge(t, c.request(t, booking, id, s.arg(0)), cmp.Or(s.arg(1), "visa"))
		})
	},
	// confirm@INTENT CARD confirms an intent that intent requested. dispute@CHARGE opens a dispute, and close@CHARGE OUTCOME ends it.
	"confirm": func(c *moneyCase, t *testing.T, s moneyStep) response {
		if i, ok := c.unconfirmed(s); ok {
			c.settle(t, i, cmp.Or(s.arg(0), "visa"))
		}
		return response{}
	},
	"dispute": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.on(&c.charges, s, func(id string) response {
			c.bank.Lock()
			defer c.bank.Unlock()
			if c.atBank(t, id, "charges", "succeeded", "dispute", map[string]any{}) {
				c.disputed(t, id, true)
			}
			return response{}
		})
	},
	"close": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.on(&c.charges, s, func(id string) response {
			c.bank.Lock()
			defer c.bank.Unlock()
			if c.atBank(t, id, "disputes", "needs_response", "close", map[string]any{"outcome": s.arg(0)}) {
				c.disputed(t, id, s.arg(0) == "lost")
			}
			return response{}
		})
	},
	// finish@CHARGE OUTCOME ends the pending refunds of a payment at the stand-in.
	"finish": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.on(&c.charges, s, func(id string) response {
			c.atBank(t, id, "refunds", "pending", "finish", map[string]any{"outcome": s.arg(0)})
			return response{}
		})
	},
	// refund@BOOKING [AMOUNT] [METHOD]: a refund of the booking's payments.
	"refund": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.on(&c.bookings, s, func(id string) response {
			body := fmt.Sprintf(`{"booking_id":%q,"reason":"requested_by_customer"`, id)
			if s.arg(0) != "" {
				body += `,"amount_minor":` + s.arg(0)
			}
			if s.arg(1) != "" {
				body += fmt.Sprintf(`,"method":%q`, s.arg(1))
			}
			return c.add(t, &c.refunds, c.post(t, "/refunds", body+"}"))
		})
	},
	"refund-card": func(c *moneyCase, t *testing.T, s moneyStep) response {
		return c.on(&c.charges, s, func(id string) response {
			return c.add(t, &c.refunds, c.post(t, "/refunds", fmt.Sprintf(`{"payment_intent_id":%q,"amount_minor":%s,"reason":"duplicate"}`, id, s.arg(0))))
		})
	},
}

func (c *moneyCase) newPackage(t *testing.T, s moneyStep) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	service := c.list(t, "/services?limit=1")[0]["id"].(string)
	deposit := ""
	if s.arg(1) != "" {
		deposit = fmt.Sprintf(`,"deposit_type":"flat","deposit_value":%s`, s.arg(1))
	}
	c.packages = append(c.packages, c.insist(t, http.MethodPost, "/packages", fmt.Sprintf(`{"service_id":%q,"name":"P","pricing":"per_guest","base_price":%s%s}`,
		service, c.money(s.arg(0)), deposit), unique("package"), http.StatusCreated).id(t))
}

func (c *moneyCase) quote(t *testing.T, body string) response {
	t.Helper()
	a := c.add(t, &c.quotes, c.post(t, "/quotes", fmt.Sprintf(`{"customer_id":%q,"event_date":%q,%s}`, c.customer, c.day, body)))
	for _, action := range []string{"send", "accept"} {
		if a.Status/100 != 2 {
			return a
		}
		a = c.post(t, "/quotes/"+a.id(t)+"/"+action, "")
	}
	if a.Status == http.StatusOK {
		var accepted chainQuote
		a.decode(t, &accepted)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bookings, c.invoices = append(c.bookings, accepted.BookingID), append(c.invoices, accepted.InvoiceIDs...)
	}
	return a
}

// on calls do with the object that a step selects, if there is one.
func (c *moneyCase) on(list *[]string, s moneyStep, do func(id string) response) response {
	if id := c.of(list, s); id != "" {
		return do(id)
	}
	return response{}
}

func (c *moneyCase) act(t *testing.T, list *[]string, s moneyStep, path, body string) response {
	t.Helper()
	return c.on(list, s, func(id string) response { return c.post(t, fmt.Sprintf(path, id), body) })
}

// request creates a payment intent.
func (c *moneyCase) request(t *testing.T, booking, invoice, amount string) response {
	t.Helper()
	body := fmt.Sprintf(`{"booking_id":%q`, booking)
	if invoice != "" {
		body += fmt.Sprintf(`,"invoice_id":%q`, invoice)
	}
	if amount != "" {
		body += `,"amount_minor":` + amount
	}
	a := c.post(t, "/payment-intents", body+"}")
	if a.Status == http.StatusCreated {
		var created intent
		a.decode(t, &created)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.intents = append(c.intents, created)
	}
	return a
}

// charge confirms the intent in a response with a test card, and waits until payments shows the result.
func (c *moneyCase) charge(t *testing.T, a response, card string) response {
	t.Helper()
	if a.Status != http.StatusCreated {
		return a
	}
	var created intent
	a.decode(t, &created)
	c.settle(t, created, card)
	return a
}

// settle confirms an intent with a test card, and waits until payments shows the result. The stand-in refuses an intent that the
// cancellation of its booking has canceled.
func (c *moneyCase) settle(t *testing.T, i intent, card string) {
	t.Helper()
	switch status, body := c.tryConfirm(i, "pm_card_"+card); {
	case status != http.StatusOK && strings.Contains(body, "payment_intent_unexpected_state"):
		return
	case status != http.StatusOK && status != http.StatusPaymentRequired:
		t.Fatalf("confirm %s: %d %s", i.ID, status, body)
	}
	await(t, i.ID+" is charged or declined", func() bool {
		got := read[intent](t, c.client, "/payment-intents/"+i.ID)
		return got.Received > 0 || got.Failure != nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.charges = append(c.charges, i.ID)
}

// unconfirmed returns the intent that a step selects.
func (c *moneyCase) unconfirmed(s moneyStep) (intent, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := s.object
	if n < 0 {
		n = len(c.intents) - 1
	}
	if n < 0 || n >= len(c.intents) || slices.Contains(c.charges, c.intents[n].ID) {
		return intent{}, false
	}
	return c.intents[n], true
}

// atBank performs an action of the control API on the objects of a payment that are in a state for it. The stand-in can still refuse
// it. It reports whether it did something.
func (c *moneyCase) atBank(t *testing.T, intent, kind, state, action string, body map[string]any) (done bool) {
	t.Helper()
	var h map[string]json.RawMessage
	var list []struct {
		ID, Status string
		Intent     string `json:"payment_intent"`
	}
	c.control(t, http.MethodGet, "accounts/"+c.account+"/snapshot", nil, &h)
	if err := json.Unmarshal(h[kind], &list); err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		if one.Intent == intent && strings.HasSuffix(one.Status, state) {
			status, _ := c.tryControl(t, http.MethodPost, kind+"/"+one.ID+"/"+action, body)
			done = done || status == http.StatusOK
		}
	}
	return done
}

// disputed waits until payments shows whether a payment is disputed.
func (c *moneyCase) disputed(t *testing.T, intent string, want bool) {
	t.Helper()
	await(t, fmt.Sprintf("%s is disputed: %v", intent, want), func() bool {
		return read[moneyIntent](t, c.client, "/payment-intents/"+intent).Disputed == want
	})
}

// run executes a step and returns the response's status, error code and fields, and the amounts that it decided; "" if the step was
// skipped.
func (c *moneyCase) run(t *testing.T, text string) string {
	t.Helper()
	s := parseMoneyStep(text)
	do := moneySteps[s.word]
	if do == nil {
		t.Fatalf("unknown step %q", text)
	}
	return decided(t, do(c, t, s))
}

// decided describes what a response decided.
func decided(t *testing.T, a response) string {
	t.Helper()
	if a.Status == 0 {
		return ""
	}
	var body struct {
		Object, Status string
		Errors         map[string]any
		Amount         json.Number
		Total          *minorAmount `json:"total_amount"`
		Due            *minorAmount `json:"amount_due"`
		Refund         *minorAmount `json:"refund_amount"`
		Cancellation   *struct {
			Due *minorAmount `json:"refund_amount_due"`
		}
	}
	a.decode(t, &body)
	out := []any{a.Status}
	switch body.Object {
	case "payment_intent", "refund":
		out = append(out, body.Amount)
	case "credit_note":
		out = append(out, body.Total.Amount, "refund", body.Refund.Amount)
	case "invoice":
		out = append(out, body.Status, body.Total.Amount, "due", body.Due.Amount)
	case "booking":
		out = append(out, body.Total.Amount)
		if body.Cancellation != nil && body.Cancellation.Due != nil {
			out = append(out, "refund", body.Cancellation.Due.Amount)
		}
	case "quote":
		out = append(out, body.Total.Amount)
	default:
		if a.code() != "" {
			out = append(out, a.code())
		}
		for _, field := range slices.Sorted(maps.Keys(body.Errors)) {
			out = append(out, field)
		}
	}
	return strings.TrimSuffix(fmt.Sprintln(out...), "\n")
}
