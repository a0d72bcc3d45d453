package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"
)

// historyAction is a write on an object, or one that creates an object.
type historyAction struct {
	method, path, body, id string
	changes                bool // it always changes the object if it succeeds
}

// historyPaths are the resources by the prefixes of their IDs.
var historyPaths = map[string]string{
	"cu": "/customers", "ld": "/leads", "qt": "/quotes", "inv": "/invoices", "cn": "/credit-notes", "bk": "/bookings", "un": "/units",
	"cl": "/closures", "srv": "/services", "pkg": "/packages", "hr": "/holiday-rules", "pi": "/payment-intents", "rf": "/refunds",
}

// act runs one operation, or a few.
func (w *historyWorker) act(t *testing.T) {
	e := w.h.enter()
	defer e.active.Add(-1)
	switch n := rand.IntN(100); {
	case n < 30:
		prefixes := []string{"bk", "bk", "bk", "qt", "qt", "inv", "inv", "cu", "ld", "cn", "un", "cl", "pi", "rf", "srv", "pkg", "hr"}
		if id := e.pick(prefixes[rand.IntN(len(prefixes))]); id != "" {
			w.get(t, e, id)
		}
	case n < 35:
		w.list(t, e, []string{"/bookings", "/quotes", "/invoices", "/customers", "/leads", "/payment-intents", "/closures"}[rand.IntN(7)])
	case n < 40:
		w.follow(t, e)
	case n < 43:
		w.pay(t, e)
	default:
		if a := writes[rand.IntN(len(writes))](e); a.path != "" {
			w.write(t, e, a)
		}
	}
}

// follow reads a quote and then the objects that it names, which must exist.
func (w *historyWorker) follow(t *testing.T, e *epoch) {
	id := e.pick("qt")
	if id == "" {
		return
	}
	a := w.get(t, e, id)
	var quote chainQuote
	if a.Status != http.StatusOK {
		return
	}
	a.decode(t, &quote)
	for _, id := range append(quote.InvoiceIDs, quote.BookingID) {
		if id != "" {
			w.get(t, e, id)
		}
	}
}

// pay pays an intent at Stripe, which reports it to the platform.
func (w *historyWorker) pay(t *testing.T, e *epoch) {
	id := e.pick("pi")
	e.mu.Lock()
	i, known := e.intents[id]
	e.mu.Unlock()
	if !known {
		return
	}
	s := stripe{w.h.p.env["STRIPE_URL"], w.h.p.env["STRIPE_PUBLISHABLE_KEY"]}
	form := url.Values{"key": {s.publishable}, "client_secret": {i.ClientSecret}, "payment_method": {"pm_card_visa"}}
	if res, err := httpClient.PostForm(s.url+"/v1/payment_intents/"+i.ID+"/confirm", form); err == nil {
		_ = res.Body.Close()
	}
}

// one returns a new object with a body.
func one(path, format string, args ...any) historyAction {
	return historyAction{method: http.MethodPost, path: path, body: fmt.Sprintf(format, args...), changes: true}
}

// on returns a write on an object; its zero value if there is none.
func on(e *epoch, prefix, method, verb, format string, args ...any) historyAction {
	id := e.pick(prefix)
	if id == "" {
		return historyAction{}
	}
	return historyAction{method: method, path: historyPaths[prefix] + "/" + id + verb, body: fmt.Sprintf(format, args...), id: id}
}

// changed marks a write that always changes the object, because its text is new.
func changed(a historyAction) historyAction {
	a.changes = true
	return a
}

// hours returns a random span of one or two hours on one of two days of the epoch.
func (e *epoch) hours() string {
	from := 8 + rand.IntN(10)
	return fmt.Sprintf(`"event_date":%q,"event_start_time":"%02d:00","event_end_time":"%02d:00"`,
		chainDay(e.number*2+rand.IntN(2)), from, from+1+rand.IntN(2))
}

const historyLines = `"line_items":[{"description":"Tour","quantity":1,"unit_amount":{"amount":100000,"currency":"USD"}}]`

func cents(limit int) string {
	return fmt.Sprintf(`{"amount":%d,"currency":"USD"}`, 1+rand.IntN(limit))
}

// optional returns a property with an object, or nothing.
func optional(name, id string) string {
	if id == "" {
		return ""
	}
	return fmt.Sprintf(`,%q:%q`, name, id)
}

// writes are the writes of the contract. Frequent ones are in the list more than once.
var writes = []func(e *epoch) historyAction{
	func(e *epoch) historyAction {
		return one("/customers", `{"first_name":"Ada","email":%q}`, unique("ada")+"@example.com")
	},
	func(e *epoch) historyAction {
		return changed(on(e, "cu", http.MethodPatch, "", `{"first_name":%q}`, unique("Ada")))
	},
	func(e *epoch) historyAction {
		if rand.IntN(20) > 0 {
			return historyAction{}
		}
		return on(e, "cu", http.MethodDelete, "", "")
	},
	func(e *epoch) historyAction {
		return one("/leads", `{"first_name":"Lea","email":%q,"source":"web"}`, unique("lea")+"@example.com")
	},
	func(e *epoch) historyAction {
		return on(e, "ld", http.MethodPatch, "", `{"status":%q}`, []string{"contacted", "qualified", "lost", "new"}[rand.IntN(4)])
	},
	func(e *epoch) historyAction {
		return changed(on(e, "ld", http.MethodPatch, "", `{"message":%q}`, unique("m")))
	},
	func(e *epoch) historyAction {
		return on(e, "ld", http.MethodPost, "/convert", `{"booking":{%s%s}}`, e.hours(), optional("unit_id", e.pick("un")))
	},
	quoteOf, quoteOf, sendQuote, sendQuote,
	func(e *epoch) historyAction {
		return changed(on(e, "qt", http.MethodPatch, "", `{"notes":%q}`, unique("n")))
	},
	acceptQuote, acceptQuote, acceptQuote,
	func(e *epoch) historyAction { return on(e, "qt", http.MethodPost, "/decline", `{"reason":"Rain"}`) },
	func(e *epoch) historyAction { return on(e, "qt", http.MethodPost, "/cancel", "") },
	func(e *epoch) historyAction { return on(e, "qt", http.MethodDelete, "", "") },
	bookingOf, bookingOf,
	func(e *epoch) historyAction {
		return changed(on(e, "bk", http.MethodPatch, "", `{"notes":%q}`, unique("n")))
	},
	func(e *epoch) historyAction {
		return changed(on(e, "bk", http.MethodPatch, "", `{"metadata":{"k":%q}}`, unique("m")))
	},
	func(e *epoch) historyAction { return on(e, "bk", http.MethodPatch, "", `{%s}`, e.hours()) },
	func(e *epoch) historyAction {
		return on(e, "bk", http.MethodPatch, "", `{"guest_count":%d%s}`, 1+rand.IntN(5), optional("unit_id", e.pick("un")))
	},
	func(e *epoch) historyAction { return on(e, "bk", http.MethodPatch, "", `{"status":"confirmed"}`) },
	func(e *epoch) historyAction { return on(e, "bk", http.MethodPost, "/cancel", `{"reason":"Rain"}`) },
	func(e *epoch) historyAction { return on(e, "bk", http.MethodPost, "/reprice", "") },
	invoiceOf,
	func(e *epoch) historyAction {
		return changed(on(e, "inv", http.MethodPatch, "", `{"notes":%q}`, unique("n")))
	},
	func(e *epoch) historyAction { return on(e, "inv", http.MethodPost, "/open", "") },
	recordPayment, recordPayment,
	func(e *epoch) historyAction {
		a := on(e, "inv", http.MethodPost, "", "")
		e.mu.Lock()
		defer e.mu.Unlock()
		list := e.payments[a.id]
		if len(list) == 0 {
			return historyAction{}
		}
		a.path += "/payments/" + list[rand.IntN(len(list))] + "/reverse"
		return a
	},
	func(e *epoch) historyAction {
		return on(e, "inv", http.MethodPost, "/credit-notes", `{"amount":%s,"refund":%q}`, cents(5000), []string{"none", "manual", "gateway"}[rand.IntN(3)])
	},
	func(e *epoch) historyAction { return on(e, "inv", http.MethodPost, "/void", "") },
	func(e *epoch) historyAction { return on(e, "inv", http.MethodPost, "/mark-uncollectible", "") },
	func(e *epoch) historyAction { return on(e, "inv", http.MethodDelete, "", "") },
	intentOf, intentOf,
	func(e *epoch) historyAction { return on(e, "pi", http.MethodPost, "/cancel", "") },
	func(e *epoch) historyAction { return on(e, "pi", http.MethodPost, "/capture", "") },
	func(e *epoch) historyAction {
		if id := e.pick("pi"); id != "" {
			return one("/refunds", `{"payment_intent_id":%q,"amount_minor":%d,"reason":"requested_by_customer"}`, id, 1+rand.IntN(400))
		}
		return historyAction{}
	},
	func(e *epoch) historyAction {
		if id := e.pick("bk"); id != "" {
			return one("/refunds", `{"booking_id":%q,"amount_minor":%d,"reason":"duplicate","method":"cash"}`, id, 1+rand.IntN(400))
		}
		return historyAction{}
	},
	unitOf,
	func(e *epoch) historyAction {
		return changed(on(e, "un", http.MethodPatch, "", `{"description":%q}`, unique("d")))
	},
	func(e *epoch) historyAction {
		if id := e.pick("un"); id != "" {
			day := chainDay(e.number*2 + rand.IntN(2))
			return one("/closures", `{"name":"Repair","unit_ids":[%q],"starts_at":"%sT2%d:00:00Z","ends_at":"%sT23:30:00Z"}`, id, day, rand.IntN(3), day)
		}
		return historyAction{}
	},
	func(e *epoch) historyAction {
		return changed(on(e, "cl", http.MethodPatch, "", `{"name":%q}`, unique("c")))
	},
	func(e *epoch) historyAction { return on(e, "cl", http.MethodDelete, "", "") },
	catalogueOf,
	func(e *epoch) historyAction {
		return changed(on(e, "srv", http.MethodPatch, "", `{"description":%q}`, unique("d")))
	},
	func(e *epoch) historyAction {
		return changed(on(e, "hr", http.MethodPatch, "", `{"name":%q}`, unique("h")))
	},
}

func quoteOf(e *epoch) historyAction {
	customer := e.pick("cu")
	if customer == "" {
		return historyAction{}
	}
	return one("/quotes", `{"customer_id":%q,%s,%s,"deposit_amount":{"amount":20000,"currency":"USD"}%s%s}`, customer, e.hours(), historyLines,
		optional("unit_id", e.pick("un")), optional("lead_id", e.pick("ld")))
}

func sendQuote(e *epoch) historyAction   { return on(e, "qt", http.MethodPost, "/send", "") }
func acceptQuote(e *epoch) historyAction { return on(e, "qt", http.MethodPost, "/accept", "") }

// bookingOf returns a booking that can expire, if the test clock moves.
func bookingOf(e *epoch) historyAction {
	hold := []string{"", `,"hold_minutes":90`}[rand.IntN(2)]
	return one("/bookings", `{%s%s%s%s}`, e.hours(), optional("unit_id", e.pick("un")), optional("customer_id", e.pick("cu")), hold)
}

func invoiceOf(e *epoch) historyAction {
	customer := e.pick("cu")
	if customer == "" {
		return historyAction{}
	}
	return one("/invoices", `{"customer_id":%q,%s%s}`, customer, historyLines, optional("booking_id", e.pick("bk")))
}

func recordPayment(e *epoch) historyAction {
	return on(e, "inv", http.MethodPost, "/record-payment", `{"amount":%s,"method":"cash"}`, cents(5000))
}

func intentOf(e *epoch) historyAction {
	booking := e.pick("bk")
	if booking == "" {
		return historyAction{}
	}
	return one("/payment-intents", `{"booking_id":%q,"amount_minor":%d}`, booking, 500+rand.IntN(500))
}

// unitOf returns one of a few units of an epoch, so that bookings compete for them.
func unitOf(e *epoch) historyAction {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.pool["un"]) >= 3 {
		return historyAction{}
	}
	return one("/units", `{"name":"Unit"}`)
}

// catalogueOf returns one of a few services, packages and holiday rules of an epoch.
func catalogueOf(e *epoch) historyAction {
	unit, service := e.pick("un"), e.pick("srv")
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case unit != "" && service == "":
		return one("/services", `{"name":"Tours","duration_minutes":60,"unit_ids":[%q]}`, unit)
	case service != "" && len(e.pool["pkg"]) < 2:
		return one("/packages", `{"service_id":%q,"name":"Day","base_price":{"amount":5000,"currency":"USD"}}`, service)
	case len(e.pool["hr"]) < 2:
		return one("/holiday-rules", `{"name":"Feast","date_from":"2100-12-24","date_to":"2100-12-26","multiplier_bps":12000}`)
	}
	return historyAction{}
}
