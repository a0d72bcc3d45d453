package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	"holdfast.dev/services/local/internal/prove"
)

// fixture is the objects of one run, by their names in actions.
type fixture map[string]string

// action is a write on the objects of a fixture, with $name in place of the ID of an object: a request of a client, or, with the method
// WORK, one run of the background worker of the platform that looks for work by a statement with the text in path, or, with the method PAYER,
// the payment of the intent of the fixture in the payer's browser.
type action struct{ name, method, path, body string }

const (
	work  = "WORK"
	payer = "PAYER"
)

// request returns the action for a fixture.
func (d action) request(sc fixture) (path, body string) {
	replace := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(name string) string { return sc[name[1:]] })
	}
	return replace(d.path), replace(d.body)
}

var placeholder = regexp.MustCompile(`\$[a-z]+`)

// family is actions on the same objects.
type family struct {
	name    string
	set     func(t *testing.T, s *prover, sc fixture)
	reads   []string // what clients see afterwards
	actions []action
	triples [][3]string // the names of three actions that run at the same time
	// lags is the longest pause between two changes of what clients see, if a part follows later: by events, by workers, or from the
	// gateway.
	lags    time.Duration
	refused []string // the actions that are refused unless another one comes first
}

const (
	slot     = `"event_date":"$day","event_start_time":"%s","event_end_time":"%s"`
	tour     = `"line_items":[{"description":"Tour","quantity":1,"unit_amount":{"amount":10000,"currency":"USD"}}]`
	cash     = `{"amount":{"amount":%d,"currency":"USD"},"method":"cash"}`
	credited = `{"amount":{"amount":%d,"currency":"USD"},"refund":"%s"}`
)

func onUnit(unit, from, to string) string {
	return `{"unit_id":"` + unit + `",` + fmt.Sprintf(slot, from, to) + `}`
}

func onBoat(from, to string) string {
	return `"service_id":"$service",` + onUnit("$unit", from, to)[1:]
}

// openInvoice creates an open invoice of 100.00.
func openInvoice(t *testing.T, s *prover, sc fixture) {
	t.Helper()
	sc.create(t, s.plain, "customer", "/customers", `{"first_name":"Ada","email":"ada@example.com"}`)
	sc.create(t, s.plain, "invoice", "/invoices", `{"customer_id":"$customer",`+tour+`}`)
	s.plain.want(t, http.StatusOK, "POST", "/invoices/"+sc["invoice"]+"/open", "")
}

// sentQuote creates a sent quote of 100.00 for 10:00 to 12:00 on a unit.
func sentQuote(t *testing.T, s *prover, sc fixture) {
	t.Helper()
	sc.create(t, s.plain, "unit", "/units", `{"name":"Quoted"}`)
	sc.create(t, s.plain, "customer", "/customers", `{"first_name":"Ada","email":"ada@example.com"}`)
	sc.create(t, s.plain, "quote", "/quotes", `{"customer_id":"$customer","unit_id":"$unit",`+fmt.Sprintf(slot, "10:00", "12:00")+
		`,`+tour+`,"deposit_amount":{"amount":2500,"currency":"USD"}}`)
	s.plain.want(t, http.StatusOK, "POST", "/quotes/"+sc["quote"]+"/send", "")
}

// packageBooking creates a booking of 100.00.
func packageBooking(t *testing.T, s *prover, sc fixture) {
	t.Helper()
	sc.create(t, s.plain, "service", "/services", `{"name":"Tours","duration_minutes":120,"slot_step_minutes":60}`)
	sc.create(t, s.plain, "unit", "/units", `{"name":"Sold","service_ids":["$service"]}`)
	sc.create(t, s.plain, "package", "/packages", `{"service_id":"$service","name":"Day","base_price":{"amount":10000,"currency":"USD"}}`)
	sc.create(t, s.plain, "customer", "/customers", `{"first_name":"Ada","email":"ada@example.com"}`)
	sc.create(t, s.plain, "booking", "/bookings", `{"unit_id":"$unit","service_id":"$service","package_id":"$package","customer_id":"$customer",`+
		fmt.Sprintf(slot, "10:00", "12:00")+`}`)
}

// startToPay creates an intent for an amount of the booking.
func (s *prover) startToPay(t *testing.T, sc fixture, minor int, capture string) (i intent) {
	t.Helper()
	s.plain.want(t, http.StatusCreated, "POST", "/payment-intents", fmt.Sprintf(`{"booking_id":%q,"amount_minor":%d,"capture_method":%q}`,
		sc["booking"], minor, capture)).decode(t, &i)
	sc["intent"], sc["secret"] = i.ID, i.ClientSecret
	return i
}

// pay pays an amount of the booking by card.
func (s *prover) pay(t *testing.T, sc fixture, minor int, capture, status string) {
	t.Helper()
	i := s.startToPay(t, sc, minor, capture)
	s.merchant.confirm(t, i, "pm_card_visa")
	await(t, "the intent is "+status, func() bool { return read[intent](t, s.plain, "/payment-intents/"+i.ID).Status == status })
}

// payUnnoticed pays an amount of the booking by card, while the gateway's events are lost. It then stores the event as the gateway's endpoint
// does.
func (s *prover) payUnnoticed(t *testing.T, sc fixture, minor int) {
	t.Helper()
	events := func(dropped bool) {
		s.merchant.control(t, http.MethodPost, "events", map[string]any{"account": s.merchant.account, "dropped": dropped}, nil)
	}
	i := s.startToPay(t, sc, minor, "automatic")
	events(true)
	s.merchant.confirm(t, i, "pm_card_visa")
	events(false)
	execute(t, s.databases["payments"], `insert into gateway_events (tenant_id, livemode, account_id, id, type, intent, received_at, due_at)
		select tenant_id, livemode, account_id, 'evt_of_' || gateway_id, 'payment_intent.succeeded', gateway_id, now(), now()
		from payment_intents where gateway_id = $1`, i.ID)
}

// abandon makes a request to a service and breaks all its connections to PostgreSQL from its call to another process on, so that the operation
// is left for a completer. It ends the lease of the operation.
func (s *prover) abandon(t *testing.T, sc fixture, service, to, path, body string) {
	t.Helper()
	path, body = action{path: path, body: body}.request(sc)
	s.calls[1].Arm(&prove.CallFault{To: to, Then: func(string) { s.cut.Store(service) }})
	got := s.clients[1].do(t, "POST", path, body, unique("abandoned"))
	s.cut.Store("")
	if count := s.calls[1].Arm(nil); got.Status != http.StatusServiceUnavailable && got.Status != http.StatusGatewayTimeout || count == 0 {
		t.Fatalf("POST %s without a database after the call to %s: %d %s after %d calls", path, to, got.Status, got.Body, count)
	}
	s.endLeases(t)
}

var families = []family{
	{
		name: "a pending booking from 10:00 to 12:00",
		set: func(t *testing.T, s *prover, sc fixture) {
			sc.create(t, s.plain, "unit", "/units", `{"name":"Ordered"}`)
			sc.create(t, s.plain, "other", "/units", `{"name":"Other"}`)
			sc.create(t, s.plain, "booking", "/bookings", onUnit("$unit", "10:00", "12:00"))
		},
		reads: []string{"/bookings/$booking", "/units/$unit"},
		actions: []action{
			{"book a free slot", "POST", "/bookings", onUnit("$unit", "13:00", "15:00")},
			{"book a slot that overlaps it", "POST", "/bookings", onUnit("$unit", "14:00", "16:00")},
			{"book the slot of the booking", "POST", "/bookings", onUnit("$unit", "10:00", "11:00")},
			{"book the other unit", "POST", "/bookings", onUnit("$other", "11:00", "13:00")},
			{"move it into the free slot", "PATCH", "/bookings/$booking", `{"event_start_time":"14:30","event_end_time":"15:30"}`},
			{"move it to the other unit", "PATCH", "/bookings/$booking", `{"unit_id":"$other"}`},
			{"confirm it", "PATCH", "/bookings/$booking", `{"status":"confirmed"}`},
			{"cancel it", "POST", "/bookings/$booking/cancel", `{"reason":"Rain"}`},
			{"change its notes", "PATCH", "/bookings/$booking", `{"notes":"Bring hats."}`},
			{"repair the unit", "PATCH", "/units/$unit", `{"status":"maintenance"}`},
			{"close the unit", "POST", "/closures", `{"name":"Repair","unit_ids":["$unit"],"starts_at":"$dayT12:30:00Z","ends_at":"$dayT23:00:00Z"}`},
		},
		refused: []string{"book the slot of the booking"},
	},
	{
		name: "a boat with 4 seats, of which 2 are booked from 10:00 to 12:00",
		set: func(t *testing.T, s *prover, sc fixture) {
			sc.create(t, s.plain, "service", "/services", `{"name":"Trips","duration_minutes":120,"slot_step_minutes":60}`)
			sc.create(t, s.plain, "unit", "/units", `{"name":"Boat","booking_mode":"seats","capacity":4,"service_ids":["$service"]}`)
			sc.create(t, s.plain, "booking", "/bookings", `{"guest_count":2,`+onBoat("10:00", "12:00"))
		},
		reads: []string{"/bookings/$booking", "/units/$unit"},
		actions: []action{
			{"join with 2", "POST", "/bookings", `{"guest_count":2,` + onBoat("10:00", "12:00")},
			{"join later with 3", "POST", "/bookings", `{"guest_count":3,` + onBoat("12:00", "14:00")},
			{"take the whole boat", "POST", "/bookings", `{"exclusive":true,"guest_count":1,` + onBoat("12:00", "14:00")},
			{"resize to 3", "PATCH", "/bookings/$booking", `{"guest_count":3}`},
			{"move behind", "PATCH", "/bookings/$booking", `{"event_start_time":"12:00","event_end_time":"14:00"}`},
			{"leave", "POST", "/bookings/$booking/cancel", `{}`},
			{"reduce the boat to 3", "PATCH", "/units/$unit", `{"capacity":3}`},
		},
		triples: [][3]string{
			{"join with 2", "move behind", "resize to 3"}, {"join with 2", "join later with 3", "leave"}, {"join with 2", "reduce the boat to 3", "resize to 3"},
		},
	},
	{
		name: "a hold that has lapsed",
		set: func(t *testing.T, s *prover, sc fixture) {
			sc.create(t, s.plain, "unit", "/units", `{"name":"Held"}`)
			sc.create(t, s.plain, "booking", "/bookings", `{"hold_minutes":5,`+onUnit("$unit", "10:00", "12:00")[1:])
			execute(t, s.databases["bookings"], "update bookings set hold_expires_at = now() where id = $1", stored(sc["booking"]))
		},
		reads: []string{"/bookings/$booking"},
		actions: []action{
			{"the worker expires it", work, "b.hold_expires_at <= $1", ""},
			{"book its slot again", "POST", "/bookings", onUnit("$unit", "11:00", "13:00")},
			{"confirm the lapsed hold", "PATCH", "/bookings/$booking", `{"status":"confirmed"}`},
			{"cancel the lapsed hold", "POST", "/bookings/$booking/cancel", `{}`},
		},
		triples: [][3]string{{"the worker expires it", "book its slot again", "confirm the lapsed hold"}},
		lags:    1200 * time.Millisecond,
		refused: []string{"confirm the lapsed hold", "cancel the lapsed hold"},
	},
	{
		name: "a sent quote",
		set: func(t *testing.T, s *prover, sc fixture) {
			sentQuote(t, s, sc)
		},
		reads: []string{"/quotes/$quote", "/invoices?customer_id=$customer", "/bookings?unit_id=$unit"},
		actions: []action{
			{"accept it", "POST", "/quotes/$quote/accept", ""},
			{"decline it", "POST", "/quotes/$quote/decline", ""},
			{"cancel the quote", "POST", "/quotes/$quote/cancel", ""},
			{"extend it", "PATCH", "/quotes/$quote", `{"notes":"Valid for a week more."}`},
			{"book its slot", "POST", "/bookings", onUnit("$unit", "11:00", "13:00")},
			{"repair its unit", "PATCH", "/units/$unit", `{"status":"maintenance"}`},
			{"change its customer", "PATCH", "/customers/$customer", `{"first_name":"Grace"}`},
		},
		triples: [][3]string{{"accept it", "decline it", "book its slot"}, {"accept it", "cancel the quote", "accept it"}},
	},
	{
		name: "a sent quote that has expired",
		set: func(t *testing.T, s *prover, sc fixture) {
			sentQuote(t, s, sc)
			execute(t, s.databases["customers"], "update quotes set expires_at = now() where id = $1", stored(sc["quote"]))
		},
		reads: []string{"/quotes/$quote", "/bookings?unit_id=$unit"},
		actions: []action{
			{"the worker expires the quote", work, "q.expires_at <= $1", ""},
			{"accept the expired quote", "POST", "/quotes/$quote/accept", ""},
			{"cancel the expired quote", "POST", "/quotes/$quote/cancel", ""},
		},
		triples: [][3]string{{"the worker expires the quote", "accept the expired quote", "cancel the expired quote"}},
		lags:    1200 * time.Millisecond,
		refused: []string{"accept the expired quote", "cancel the expired quote"},
	},
	{
		name: "a quote whose accept was abandoned",
		set: func(t *testing.T, s *prover, sc fixture) {
			sentQuote(t, s, sc)
			s.abandon(t, sc, "customers", "bookings", "/quotes/$quote/accept", "")
		},
		reads: []string{"/quotes/$quote", "/invoices?customer_id=$customer", "/bookings?unit_id=$unit"},
		actions: []action{
			{"the completer accepts it", work, "q.accept_next <= $3", ""},
			{"accept it again", "POST", "/quotes/$quote/accept", ""},
			{"decline it now", "POST", "/quotes/$quote/decline", ""},
			{"cancel the quote now", "POST", "/quotes/$quote/cancel", ""},
		},
		triples: [][3]string{{"the completer accepts it", "accept it again", "decline it now"}},
		lags:    1200 * time.Millisecond,
		refused: []string{"decline it now", "cancel the quote now"},
	},
	{
		name: "a draft of a quote",
		set: func(t *testing.T, s *prover, sc fixture) {
			sc.create(t, s.plain, "customer", "/customers", `{"first_name":"Ada","email":"ada@example.com"}`)
			sc.create(t, s.plain, "quote", "/quotes", `{"customer_id":"$customer","event_date":"$day",`+tour+`}`)
		},
		reads: []string{"/quotes?customer_id=$customer", "/customers/$customer"},
		actions: []action{
			{"send it", "POST", "/quotes/$quote/send", ""},
			{"price it again", "PATCH", "/quotes/$quote", `{"line_items":[{"description":"Tour","quantity":2,"unit_amount":{"amount":9000,"currency":"USD"}}]}`},
			{"delete the quote", "DELETE", "/quotes/$quote", ""},
			{"quote again", "POST", "/quotes", `{"customer_id":"$customer",` + tour + `}`},
			{"delete its customer", "DELETE", "/customers/$customer", ""},
			{"rename its customer", "PATCH", "/customers/$customer", `{"first_name":"Grace"}`},
		},
	},
	{
		name: "a lead",
		set: func(t *testing.T, s *prover, sc fixture) {
			sc.create(t, s.plain, "unit", "/units", `{"name":"Wanted"}`)
			sc.create(t, s.plain, "lead", "/leads", `{"first_name":"Ada","email":"$tag@example.com","unit_id":"$unit"}`)
		},
		reads: []string{"/leads/$lead", "/bookings?unit_id=$unit"},
		actions: []action{
			{"convert it", "POST", "/leads/$lead/convert", `{"booking":` + onUnit("$unit", "10:00", "12:00") + `}`},
			{"convert it into a customer", "POST", "/leads/$lead/convert", `{}`},
			{"qualify it", "PATCH", "/leads/$lead", `{"status":"qualified"}`},
			{"lose it", "PATCH", "/leads/$lead", `{"status":"lost","lost_reason":"Price"}`},
			{"book its slot first", "POST", "/bookings", onUnit("$unit", "11:00", "13:00")},
			{"add a lead", "POST", "/leads", `{"first_name":"Grace"}`},
		},
		triples: [][3]string{{"convert it", "lose it", "book its slot first"}},
	},
	{
		name: "a lead whose conversion was abandoned",
		set: func(t *testing.T, s *prover, sc fixture) {
			sc.create(t, s.plain, "unit", "/units", `{"name":"Wanted"}`)
			sc.create(t, s.plain, "lead", "/leads", `{"first_name":"Ada","email":"$tag@example.com"}`)
			s.abandon(t, sc, "customers", "bookings", "/leads/$lead/convert", `{"booking":`+onUnit("$unit", "10:00", "12:00")+`}`)
		},
		reads: []string{"/leads/$lead", "/bookings?unit_id=$unit"},
		actions: []action{
			{"the completer converts it", work, "l.converting_until <= $3", ""},
			{"convert it again", "POST", "/leads/$lead/convert", `{"booking":` + onUnit("$unit", "10:00", "12:00") + `}`},
			{"lose it now", "PATCH", "/leads/$lead", `{"status":"lost"}`},
		},
		lags:    1200 * time.Millisecond,
		refused: []string{"lose it now"},
	},
	{
		name:  "an open invoice of 100.00",
		set:   openInvoice,
		reads: []string{"/invoices/$invoice", "/credit-notes?invoice_id=$invoice"},
		actions: []action{
			{"pay all", "POST", "/invoices/$invoice/record-payment", fmt.Sprintf(cash, 10000)},
			{"pay a part", "POST", "/invoices/$invoice/record-payment", fmt.Sprintf(cash, 4000)},
			{"credit all of it", "POST", "/invoices/$invoice/credit-notes", fmt.Sprintf(credited, 10000, "none")},
			{"void it", "POST", "/invoices/$invoice/void", ""},
		},
		triples: [][3]string{{"pay all", "pay a part", "void it"}, {"pay a part", "credit all of it", "pay a part"}},
	},
	{
		name: "an open invoice of 100.00 of which 30.00 are paid",
		set: func(t *testing.T, s *prover, sc fixture) {
			openInvoice(t, s, sc)
			var paid struct{ Payments []struct{ ID string } }
			s.plain.want(t, http.StatusOK, "POST", "/invoices/"+sc["invoice"]+"/record-payment", fmt.Sprintf(cash, 3000)).decode(t, &paid)
			sc["payment"] = paid.Payments[0].ID
		},
		reads: []string{"/invoices/$invoice", "/credit-notes?invoice_id=$invoice"},
		actions: []action{
			{"pay the rest", "POST", "/invoices/$invoice/record-payment", fmt.Sprintf(cash, 7000)},
			{"pay a part of the rest", "POST", "/invoices/$invoice/record-payment", fmt.Sprintf(cash, 4000)},
			{"reverse the payment", "POST", "/invoices/$invoice/payments/$payment/reverse", ""},
			{"credit all", "POST", "/invoices/$invoice/credit-notes", fmt.Sprintf(credited, 10000, "none")},
			{"credit a part and hand it back", "POST", "/invoices/$invoice/credit-notes", fmt.Sprintf(credited, 9000, "manual")},
			{"void the paid one", "POST", "/invoices/$invoice/void", ""},
			{"mark it uncollectible", "POST", "/invoices/$invoice/mark-uncollectible", ""},
		},
		triples: [][3]string{{"credit all", "credit a part and hand it back", "reverse the payment"}, {"pay the rest", "reverse the payment", "mark it uncollectible"}},
		refused: []string{"void the paid one"},
	},
	{
		name: "an invoice whose payment was abandoned",
		set: func(t *testing.T, s *prover, sc fixture) {
			openInvoice(t, s, sc)
			s.abandon(t, sc, "customers", "payments", "/invoices/$invoice/record-payment", fmt.Sprintf(cash, 4000))
		},
		reads: []string{"/invoices/$invoice", "/credit-notes?invoice_id=$invoice"},
		actions: []action{
			{"the completer records it", work, "c.call_next <= $3", ""},
			{"pay another part", "POST", "/invoices/$invoice/record-payment", fmt.Sprintf(cash, 6000)},
			{"void the unpaid one", "POST", "/invoices/$invoice/void", ""},
			{"credit the rest", "POST", "/invoices/$invoice/credit-notes", fmt.Sprintf(credited, 10000, "none")},
		},
		triples: [][3]string{{"the completer records it", "pay another part", "void the unpaid one"}},
		lags:    1200 * time.Millisecond,
		refused: []string{"void the unpaid one"},
	},
	{
		name: "a draft of an invoice",
		set: func(t *testing.T, s *prover, sc fixture) {
			sc.create(t, s.plain, "customer", "/customers", `{"first_name":"Ada","email":"ada@example.com"}`)
			sc.create(t, s.plain, "invoice", "/invoices", `{"customer_id":"$customer",`+tour+`}`)
		},
		reads: []string{"/invoices?customer_id=$customer"},
		actions: []action{
			{"open it", "POST", "/invoices/$invoice/open", ""},
			{"change its lines", "PATCH", "/invoices/$invoice", `{"line_items":[{"description":"Tour","quantity":2,"unit_amount":{"amount":9000,"currency":"USD"}}]}`},
			{"delete the invoice", "DELETE", "/invoices/$invoice", ""},
			{"invoice again", "POST", "/invoices", `{"customer_id":"$customer",` + tour + `}`},
			{"pay the draft", "POST", "/invoices/$invoice/record-payment", fmt.Sprintf(cash, 4000)},
		},
		refused: []string{"pay the draft"},
	},
	{
		name: "a booking of 100.00 with an open invoice",
		set: func(t *testing.T, s *prover, sc fixture) {
			packageBooking(t, s, sc)
			sc.create(t, s.plain, "invoice", "/invoices", `{"customer_id":"$customer","booking_id":"$booking",`+tour+`}`)
			s.plain.want(t, http.StatusOK, "POST", "/invoices/"+sc["invoice"]+"/open", "")
		},
		reads: []string{"/bookings/$booking", "/invoices/$invoice", "/payment-intents?booking_id=$booking", "/refunds?booking_id=$booking", "/credit-notes?invoice_id=$invoice"},
		actions: []action{
			{"pay the booking in cash", "POST", "/invoices/$invoice/record-payment", fmt.Sprintf(cash, 10000)},
			{"start a card payment", "POST", "/payment-intents", `{"booking_id":"$booking","amount_minor":10000}`},
			{"cancel the booking", "POST", "/bookings/$booking/cancel", `{}`},
			{"credit half", "POST", "/invoices/$invoice/credit-notes", fmt.Sprintf(credited, 5000, "none")},
			{"void its invoice", "POST", "/invoices/$invoice/void", ""},
			{"raise the price", "PATCH", "/packages/$package", `{"base_price":{"amount":12000,"currency":"USD"}}`},
			{"reprice it", "POST", "/bookings/$booking/reprice", ""},
			{"confirm the booking", "PATCH", "/bookings/$booking", `{"status":"confirmed"}`},
		},
		triples: [][3]string{{"pay the booking in cash", "cancel the booking", "start a card payment"}},
		lags:    2500 * time.Millisecond,
	},
	{
		name: "a booking of 100.00 of which 60.00 are paid by card",
		set: func(t *testing.T, s *prover, sc fixture) {
			packageBooking(t, s, sc)
			s.pay(t, sc, 6000, "automatic", "succeeded")
		},
		reads: []string{"/bookings/$booking", "/payment-intents?booking_id=$booking", "/refunds?booking_id=$booking"},
		actions: []action{
			{"start to pay the rest", "POST", "/payment-intents", `{"booking_id":"$booking"}`},
			{"refund 40.00", "POST", "/refunds", `{"payment_intent_id":"$intent","amount_minor":4000,"reason":"requested_by_customer"}`},
			{"refund all", "POST", "/refunds", `{"payment_intent_id":"$intent","reason":"requested_by_customer"}`},
			{"hand back 30.00", "POST", "/refunds", `{"booking_id":"$booking","amount_minor":3000,"reason":"duplicate","method":"cash"}`},
			{"cancel the paid booking", "POST", "/bookings/$booking/cancel", `{}`},
		},
		triples: [][3]string{{"start to pay the rest", "cancel the paid booking", "refund 40.00"}},
		lags:    2500 * time.Millisecond,
	},
	{
		name: "a booking with an authorized card",
		set: func(t *testing.T, s *prover, sc fixture) {
			packageBooking(t, s, sc)
			s.pay(t, sc, 6000, "manual", "requires_capture")
		},
		reads: []string{"/bookings/$booking", "/payment-intents?booking_id=$booking"},
		actions: []action{
			{"capture it", "POST", "/payment-intents/$intent/capture", `{}`},
			{"capture a part", "POST", "/payment-intents/$intent/capture", `{"amount_minor":2000}`},
			{"release it", "POST", "/payment-intents/$intent/cancel", `{}`},
			{"cancel the authorized booking", "POST", "/bookings/$booking/cancel", `{}`},
		},
		lags: 2500 * time.Millisecond,
	},
	{
		name: "a booking of 100.00 with a card payment in the payer's browser",
		set: func(t *testing.T, s *prover, sc fixture) {
			packageBooking(t, s, sc)
			s.startToPay(t, sc, 6000, "automatic")
		},
		reads: []string{"/bookings/$booking", "/payment-intents?booking_id=$booking", "/refunds?booking_id=$booking"},
		actions: []action{
			{"the payer pays", payer, "", ""},
			{"cancel the intent", "POST", "/payment-intents/$intent/cancel", `{}`},
			{"cancel the booking of the payer", "POST", "/bookings/$booking/cancel", `{}`},
			{"start another payment", "POST", "/payment-intents", `{"booking_id":"$booking"}`},
		},
		triples: [][3]string{{"the payer pays", "cancel the intent", "cancel the booking of the payer"}},
		lags:    2500 * time.Millisecond,
	},
	{
		name: "a card payment whose event waits",
		set: func(t *testing.T, s *prover, sc fixture) {
			packageBooking(t, s, sc)
			s.payUnnoticed(t, sc, 6000)
		},
		reads: []string{"/bookings/$booking", "/payment-intents?booking_id=$booking", "/refunds?booking_id=$booking"},
		actions: []action{
			{"the worker processes the event", work, "e.due_at <= $3", ""},
			{"cancel the paid intent", "POST", "/payment-intents/$intent/cancel", `{}`},
			{"refund the unnoticed payment", "POST", "/refunds", `{"payment_intent_id":"$intent","reason":"requested_by_customer"}`},
			{"cancel the booking that is paid", "POST", "/bookings/$booking/cancel", `{}`},
			{"pay the rest by card", "POST", "/payment-intents", `{"booking_id":"$booking"}`},
		},
		triples: [][3]string{{"the worker processes the event", "cancel the booking that is paid", "pay the rest by card"}},
		lags:    2500 * time.Millisecond,
		refused: []string{"cancel the paid intent", "refund the unnoticed payment"},
	},
	{
		name: "a card payment whose creation was abandoned",
		set: func(t *testing.T, s *prover, sc fixture) {
			packageBooking(t, s, sc)
			s.abandon(t, sc, "payments", paymentGateway, "/payment-intents", `{"booking_id":"$booking","amount_minor":6000}`)
		},
		reads: []string{"/bookings/$booking", "/payment-intents?booking_id=$booking"},
		actions: []action{
			{"the completer creates it", work, "p.leased_until <= $3", ""},
			{"create one more", "POST", "/payment-intents", `{"booking_id":"$booking","amount_minor":5000}`},
			{"cancel its booking meanwhile", "POST", "/bookings/$booking/cancel", `{}`},
		},
		triples: [][3]string{{"the completer creates it", "create one more", "cancel its booking meanwhile"}},
		lags:    2500 * time.Millisecond,
	},
	{
		name: "a refund whose creation was abandoned",
		set: func(t *testing.T, s *prover, sc fixture) {
			packageBooking(t, s, sc)
			s.pay(t, sc, 6000, "automatic", "succeeded")
			s.abandon(t, sc, "payments", paymentGateway, "/refunds", `{"payment_intent_id":"$intent","amount_minor":4000,"reason":"requested_by_customer"}`)
		},
		reads: []string{"/bookings/$booking", "/payment-intents?booking_id=$booking", "/refunds?booking_id=$booking"},
		actions: []action{
			{"the completer refunds it", work, "r.leased_until <= $3", ""},
			{"refund 20.00", "POST", "/refunds", `{"payment_intent_id":"$intent","amount_minor":2000,"reason":"requested_by_customer"}`},
			{"refund 30.00", "POST", "/refunds", `{"payment_intent_id":"$intent","amount_minor":3000,"reason":"requested_by_customer"}`},
			{"hand back 20.00", "POST", "/refunds", `{"booking_id":"$booking","amount_minor":2000,"reason":"duplicate","method":"cash"}`},
			{"cancel the refunded booking", "POST", "/bookings/$booking/cancel", `{}`},
		},
		triples: [][3]string{{"the completer refunds it", "refund 20.00", "hand back 20.00"}},
		lags:    2500 * time.Millisecond,
		refused: []string{"refund 30.00"},
	},
	{
		name: "a booking of 100.00 on a day with a holiday rule",
		set: func(t *testing.T, s *prover, sc fixture) {
			packageBooking(t, s, sc)
			sc.create(t, s.plain, "rule", "/holiday-rules", `{"name":"Fair","date_from":"$day","date_to":"$day","multiplier_bps":15000,"package_id":"$package"}`)
		},
		reads: []string{"/bookings/$booking", "/holiday-rules/$rule", "/packages/$package", "/bookings?unit_id=$unit"},
		actions: []action{
			{"reduce the multiplier", "PATCH", "/holiday-rules/$rule", `{"multiplier_bps":12000}`},
			{"end the rule", "PATCH", "/holiday-rules/$rule", `{"active":false}`},
			{"add a stronger rule", "POST", "/holiday-rules", `{"name":"Final","date_from":"$day","date_to":"$day","multiplier_bps":20000,"package_id":"$package","priority":5}`},
			{"raise the price of the package", "PATCH", "/packages/$package", `{"base_price":{"amount":12000,"currency":"USD"}}`},
			{"reprice the booking", "POST", "/bookings/$booking/reprice", ""},
			{"book the package later", "POST", "/bookings", `{"service_id":"$service","package_id":"$package",` + onUnit("$unit", "13:00", "15:00")[1:]},
			{"add a customer", "POST", "/customers", `{"first_name":"Grace","email":"$tag@example.com"}`},
			{"add a service", "POST", "/services", `{"name":"Talks","duration_minutes":60}`},
		},
		triples: [][3]string{{"reduce the multiplier", "raise the price of the package", "reprice the booking"}},
	},
	{
		name: "the catalogue",
		set: func(t *testing.T, s *prover, sc fixture) {
			sc.create(t, s.plain, "service", "/services", `{"name":"Tours","duration_minutes":120,"slot_step_minutes":60}`)
			sc.create(t, s.plain, "unit", "/units", `{"name":"Sold","service_ids":["$service"]}`)
			sc.create(t, s.plain, "package", "/packages", `{"service_id":"$service","name":"Day","base_price":{"amount":10000,"currency":"USD"}}`)
			sc.create(t, s.plain, "closure", "/closures", `{"name":"Repair","unit_ids":["$unit"],"starts_at":"$dayT14:30:00Z","ends_at":"$dayT14:45:00Z"}`)
			sc.create(t, s.plain, "feed", "/calendar-feeds", `{"name":"Mine","unit_id":"$unit"}`)
		},
		reads: []string{"/services/$service", "/packages?service_id=$service", "/units?service_id=$service", "/closures?unit_id=$unit", "/calendar-feeds?unit_id=$unit", "/bookings?unit_id=$unit"},
		actions: []action{
			{"stop the service", "PATCH", "/services/$service", `{"active":false}`},
			{"stop the package", "PATCH", "/packages/$package", `{"active":false}`},
			{"take the unit from the service", "PATCH", "/units/$unit", `{"service_ids":[]}`},
			{"add a unit", "POST", "/units", `{"name":"New","service_ids":["$service"]}`},
			{"add a package", "POST", "/packages", `{"service_id":"$service","name":"Night","base_price":{"amount":20000,"currency":"USD"}}`},
			{"move the closure", "PATCH", "/closures/$closure", `{"starts_at":"$dayT20:00:00Z","ends_at":"$dayT21:00:00Z"}`},
			{"delete the closure", "DELETE", "/closures/$closure", ""},
			{"delete the feed", "DELETE", "/calendar-feeds/$feed", ""},
			{"add a feed", "POST", "/calendar-feeds", `{"name":"Yours","unit_id":"$unit"}`},
			{"book the package", "POST", "/bookings", `{"service_id":"$service","package_id":"$package",` + onUnit("$unit", "10:00", "12:00")[1:]},
		},
	},
}

// create creates an object of the fixture.
func (sc fixture) create(t *testing.T, c *client, name, path, body string) {
	t.Helper()
	_, body = action{body: body}.request(sc)
	got := c.do(t, "POST", path, body, "")
	if got.Status != http.StatusCreated {
		t.Fatalf("POST %s with %s: %d %s", path, body, got.Status, got.Body)
	}
	sc[name] = got.id(t)
}
