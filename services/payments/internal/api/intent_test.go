package api_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/domain"
)

var errLost = errors.New("the response was lost")

func TestCreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "pending", 10_000, 7500, "USD")
	created := w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, b.ID), key("k")).is(201)
	p := created.intent()
	if p.Amount != 7500 || p.Currency != "USD" || p.Status != "requires_payment_method" || p.ClientSecret == nil || p.Version != 1 {
		t.Errorf("%s", created.Body)
	}
	again := w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, b.ID), key("k")).is(201)
	if string(again.Body) != string(created.Body) || w.gateway.Created() != 1 {
		t.Errorf("%s, %d created", again.Body, w.gateway.Created())
	}
	got := w.do(ctx, "GET", "/payment-intents/"+p.ID, "").is(200)
	if got.intent().ClientSecret != nil || strings.Contains(string(got.Body), "_secret_") {
		t.Errorf("the secret is shown again: %s", got.Body)
	}
	w.post(ctx, fmt.Sprintf(`{"booking_id":%q,"amount_minor":1000}`, b.ID), key("k")).is(422, "idempotency_mismatch", "Idempotency-Key")
	events := w.emitted()
	if len(events) != 1 || events[0].GetType() != "payment_intent.updated" || strings.Contains(string(events[0].GetObject()), "_secret_") {
		t.Errorf("%v", events)
	}
}

// TestSecretsAreSealed checks that no stored data except the sealed response contains the client secret, and that the account's
// keys are never stored as plain text.
func TestSecretsAreSealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	p := w.post(ctx, w.booked(ctx, 100), key("k")).is(201).intent()
	for _, table := range []string{
		"gateway_accounts", "gateway_webhook_secrets", "payment_intents", "idempotency_keys", "outbox", "inbox", "bookings", "gateway_events",
	} {
		for _, secret := range []string{*p.ClientSecret, "secret1234567", "whsec_1"} {
			if n := w.Count(`select count(*) from `+table+` r where convert_from(convert_to(r::text, 'UTF8'), 'UTF8') like '%' || $1 || '%'
				or encode(convert_to(r::text, 'UTF8'), 'escape') like '%' || encode($1::text::bytea, 'hex') || '%'`, secret); n != 0 {
				t.Errorf("%s holds %q", table, secret)
			}
		}
	}
}

// TestCreateRefusals checks the response to a violation of each rule in the specification and the decisions.
func TestCreateRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, other := w.tenant(), w.tenant()
	open := w.bookings.Add(ctx, "pending", 10_000, 7500, "USD")
	unpriced := w.bookings.Add(ctx, "pending", 0, 0, "USD")
	bill := w.invoices.Add(ctx, open.ID, "open", 2500, "USD")
	draft := w.invoices.Add(ctx, open.ID, "draft", 2500, "USD")
	elsewhere := w.invoices.Add(ctx, unpriced.ID, "open", 2500, "USD")
	id := func(b domain.Booking, more string) string { return fmt.Sprintf(`{"booking_id":%q%s}`, b.ID, more) }
	for name, c := range map[string]struct {
		body   string
		status int
		code   []string
	}{
		"no booking":         {`{}`, 422, []string{"invalid_request", "booking_id"}},
		"unknown":            {`{"booking_id":"bk_00000000000000000000000000"}`, 404, []string{"booking_not_found"}},
		"malformed":          {`{"booking_id":"x"}`, 404, []string{"booking_not_found"}},
		"another tenant's":   {id(w.bookings.Add(other, "pending", 1, 1, "USD"), ""), 404, []string{"booking_not_found"}},
		"cancelled":          {id(w.bookings.Add(ctx, "cancelled", 100, 100, "USD"), ""), 422, []string{"booking_not_payable", "booking_id"}},
		"expired":            {id(w.bookings.Add(ctx, "expired", 100, 100, "USD"), ""), 422, []string{"booking_not_payable", "booking_id"}},
		"paid":               {id(w.bookings.Add(ctx, "confirmed", 100, 0, "USD"), ""), 422, []string{"booking_already_paid", "booking_id"}},
		"paid, with amount":  {id(w.bookings.Add(ctx, "confirmed", 100, 0, "USD"), `,"amount_minor":5`), 422, []string{"booking_already_paid", "booking_id"}},
		"too much":           {id(open, `,"amount_minor":7501`), 422, []string{"invalid_request", "amount_minor"}},
		"0":                  {id(open, `,"amount_minor":0`), 422, []string{"invalid_request", "amount_minor"}},
		"over the bound":     {id(open, `,"amount_minor":100000000`), 422, []string{"invalid_request", "amount_minor"}},
		"other currency":     {id(open, `,"currency":"EUR"`), 422, []string{"currency_mismatch", "currency"}},
		"no currency":        {id(open, `,"currency":"EURO"`), 422, []string{"invalid_request", "currency"}},
		"unpriced":           {id(unpriced, ""), 422, []string{"invalid_request", "amount_minor"}},
		"below the minimum":  {id(open, `,"amount_minor":49`), 422, []string{"invalid_request", "amount_minor"}},
		"thousandths":        {id(w.bookings.Add(ctx, "pending", 1005, 1005, "KWD"), ""), 422, []string{"invalid_request", "amount_minor"}},
		"draft":              {id(open, fmt.Sprintf(`,"invoice_id":%q`, draft.ID)), 422, []string{"invalid_request", "invoice_id"}},
		"another booking's":  {id(open, fmt.Sprintf(`,"invoice_id":%q`, elsewhere.ID)), 422, []string{"invalid_request", "invoice_id"}},
		"malformed invoice":  {id(open, `,"invoice_id":"inv_x"`), 422, []string{"invalid_request", "invoice_id"}},
		"unknown invoice":    {id(open, `,"invoice_id":"inv_00000000000000000000000000"`), 422, []string{"invalid_request", "invoice_id"}},
		"more than invoiced": {id(open, fmt.Sprintf(`,"invoice_id":%q,"amount_minor":2501`, bill.ID)), 422, []string{"invalid_request", "amount_minor"}},
	} {
		t.Run(name, func(t *testing.T) {
			w.post(ctx, c.body, key(name)).is(c.status, c.code...)
		})
	}
	if n := w.gateway.Created(); n != 0 {
		t.Errorf("%d intents were created", n)
	}
	for body, amount := range map[string]int64{
		id(open, `,"currency":"usd","amount_minor":50`): 50, id(unpriced, `,"amount_minor":99`): 99,
		id(open, fmt.Sprintf(`,"invoice_id":%q`, bill.ID)): 2500, id(open, `,"amount_minor":null,"currency":null`): 7500,
	} {
		if p := w.post(ctx, body).is(201).intent(); p.Amount != amount || p.Currency != "USD" {
			t.Errorf("%s: %+v", body, p)
		}
	}
}

func TestWithoutGateway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	body := w.booked(ctx, 100)
	if a := w.post(ctx, body).is(502, "payment_intent_failed"); !strings.Contains(string(a.Body), "An owner connects one in the console") ||
		a.Header.Get("Service-Should-Retry") != "false" {
		t.Errorf("%v %s", a.Header, a.Body)
	}
	w.do(ctx, "GET", "/payment-intents/pi_1", "").is(409, "gateway_not_configured")
	w.do(ctx, "GET", "/payment-intents/x", "").is(409, "gateway_not_configured")
	w.do(ctx, "GET", "/payment-intents", "").is(200)
	w.do(ctx, "POST", "/payment-intents/pi_1/cancel", "").is(404, "payment_intent_not_found")
	w.connect(ctx)
	w.do(ctx, "GET", "/payment-intents/pi_1", "").is(404, "payment_intent_not_found")
	p := w.post(ctx, body).is(201).intent()
	if _, err := w.accounts.Disconnect(ctx); err != nil {
		t.Fatal(err)
	}
	w.do(ctx, "GET", "/payment-intents/"+p.ID, "").is(409, "gateway_not_configured")
	w.do(ctx, "POST", "/payment-intents/"+p.ID+"/cancel", "").is(200) // an intent in progress can still be completed
}

// TestCreatesAtOnce checks that twenty requests with one key create one intent, and that each request gets it.
func TestCreatesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway.Before = func(context.Context, string) error { time.Sleep(20 * time.Millisecond); return nil }
	ctx := w.tenant()
	body := w.booked(ctx, 100)
	var mu sync.Mutex
	seen := map[string]int{}
	atOnce(20, func(int) {
		a := w.post(ctx, body, key("k")).is(201)
		mu.Lock()
		seen[string(a.Body)]++
		mu.Unlock()
	})
	if len(seen) != 1 || w.gateway.Created() != 1 {
		t.Errorf("%d created, responses %v", w.gateway.Created(), seen)
	}
	if n := w.Count(`select count(*) from payment_intents`); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestLostResponses checks that, if the gateway's response is lost, the client's repetition or the completer finds the intent. No
// intent is created twice.
func TestLostResponses(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after"} {
		for _, who := range []string{"client", "completer", "completer, a day later"} {
			t.Run(when+", "+who, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				ctx := w.tenant()
				body := w.booked(ctx, 100)
				var lost atomic.Bool
				lose := func(_ context.Context, call string) error {
					if call == "create" && !lost.Swap(true) {
						return errLost
					}
					return nil
				}
				if when == "before" {
					w.gateway.Before = lose
				} else {
					w.gateway.After = lose
				}
				w.post(ctx, body, key("k")).is(502, "payment_intent_failed")
				if list := w.do(ctx, "GET", "/payment-intents", "").is(200); strings.Contains(string(list.Body), "pi_") {
					t.Errorf("it is listed: %s", list.Body)
				}
				w.ahead.Add(int64(2 * time.Second))
				if who == "completer, a day later" {
					w.ahead.Add(int64(24 * time.Hour))
					w.gateway.Forget()
				}
				if who != "client" {
					if err := w.completer.Run(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if who == "completer, a day later" { // the client's key has expired too, so the request creates another payment
					if n := w.Count(`select count(*) from payment_intents where status = 'requires_payment_method'`); n != 1 {
						t.Errorf("%d rows", n)
					}
				} else if p := w.post(ctx, body, key("k")).is(201).intent(); p.ClientSecret == nil {
					t.Errorf("no client secret: %+v", p)
				}
				if n := w.gateway.Created(); n != 1 {
					t.Errorf("%d created", n)
				}
				if n := len(w.emitted()); n != 1 {
					t.Errorf("%d events", n)
				}
			})
		}
	}
}

// TestBrokenResponses checks that, if the gateway stores a response without information, another attempt is made only if the intent
// is not found there.
func TestBrokenResponses(t *testing.T) {
	t.Parallel()
	for _, had := range []bool{false, true} {
		w := newWorld(t)
		ctx := w.tenant()
		attempts := map[bool]int{}
		fail := func(_ context.Context, call string) error {
			if call == "create" && attempts[true] < 2 { // first attempt and its repetition
				attempts[true]++
				return &domain.BrokenError{Status: 500}
			}
			return nil
		}
		if had {
			w.gateway.After = fail
		} else {
			w.gateway.Before = fail
		}
		w.post(ctx, w.booked(ctx, 100), key("k")).is(502, "payment_intent_failed")
		w.ahead.Add(int64(2 * time.Second))
		if err := w.completer.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.gateway.Created(); n != 1 {
			t.Errorf("effect %t: %d created", had, n)
		}
		want := 2
		if had {
			want = 1
		}
		if n := w.Count(`select attempt from payment_intents`); n != want {
			t.Errorf("effect %t: attempt %d", had, n)
		}
	}
}

// TestRefusedThenAccepted checks that, after a refusal, a client can use the same key again, even for a different request.
func TestRefusedThenAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "pending", 10_000, 7500, "USD")
	w.post(ctx, fmt.Sprintf(`{"booking_id":%q,"amount_minor":1}`, b.ID), key("k")).is(422, "invalid_request", "amount_minor")
	p := w.post(ctx, fmt.Sprintf(`{"booking_id":%q,"amount_minor":500}`, b.ID), key("k")).is(201).intent()
	if p.Amount != 500 || w.gateway.Created() != 1 {
		t.Errorf("%+v, %d created", p, w.gateway.Created())
	}
	w.gateway.Before = func(context.Context, string) error { return &domain.BusyError{RetryAfter: 7 * time.Second} }
	if a := w.post(ctx, w.booked(ctx, 100), key("busy")).is(502, "payment_intent_failed"); a.Header.Get("Retry-After") != "7" {
		t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
	}
	w.gateway.Before = nil
	w.post(ctx, w.booked(ctx, 100), key("busy")).is(201)
}

// TestActions checks that each action in each state has the same result as at Stripe, and that an action that was already performed
// changes nothing.
func TestActions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	verdicts := map[string]map[domain.Status]int{
		"cancel": {
			domain.RequiresPaymentMethod: 200, domain.RequiresConfirmation: 200, domain.RequiresAction: 200, domain.Processing: 422,
			domain.RequiresCapture: 200, domain.Canceled: 200, domain.Succeeded: 422,
		},
		"capture": {
			domain.RequiresPaymentMethod: 422, domain.RequiresConfirmation: 422, domain.RequiresAction: 422, domain.Processing: 422,
			domain.RequiresCapture: 200, domain.Canceled: 422, domain.Succeeded: 200,
		},
	}
	for action, byStatus := range verdicts {
		for status, want := range byStatus {
			for _, known := range []bool{true, false} { // whether this service knew the state before
				body := strings.TrimSuffix(w.booked(ctx, 100), "}") + `,"capture_method":"manual"}`
				p := w.post(ctx, body).is(201).intent()
				w.gateway.Change(p.ID, func(s *domain.Snapshot) {
					s.Status = status
					if status == domain.RequiresCapture {
						s.Capturable = s.Amount
					}
					if status == domain.Succeeded {
						s.Received = s.Amount
					}
				})
				if known {
					w.refresh(ctx, p.ID)
				}
				got := w.do(ctx, "POST", "/payment-intents/"+p.ID+"/"+action, "")
				if !known && (action == "capture" || status == domain.Succeeded) {
					continue // this service decides by the state it knows
				}
				if got.Status != want {
					t.Errorf("%s of %s, known %t: %d %s", action, status, known, got.Status, got.Body)
				}
				if want == 422 {
					got.is(422, "invalid_status_transition", "status")
				}
			}
		}
	}
}

func (w *world) refresh(ctx context.Context, id string) {
	w.T.Helper()
	p, err := storeIntent(ctx, w, id)
	if err != nil {
		w.T.Fatal(err)
	}
	account, err := w.accounts.Show(ctx)
	if err != nil {
		w.T.Fatal(err)
	}
	if _, err := w.intents.Refresh(ctx, account, p); err != nil {
		w.T.Fatal(err)
	}
}

func TestCapture(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	body := strings.TrimSuffix(w.booked(ctx, 1000), "}") + `,"capture_method":"manual"}`
	p := w.post(ctx, body).is(201).intent()
	w.gateway.Change(p.ID, func(s *domain.Snapshot) { s.Status, s.Capturable = domain.RequiresCapture, 1000 })
	w.refresh(ctx, p.ID)
	path := "/payment-intents/" + p.ID + "/capture"
	w.do(ctx, "POST", path, `{"amount_minor":1001}`).is(422, "invalid_request", "amount_minor")
	w.do(ctx, "POST", path, `{"amount_minor":400}`, header(`If-Match: "1"`)).is(412, "version_mismatch")
	got := w.do(ctx, "POST", path, `{"amount_minor":400}`, key("c")).is(200)
	if p = got.intent(); p.Status != "succeeded" || p.Received != 400 || p.Capturable != 0 {
		t.Errorf("%s", got.Body)
	}
	if again := w.do(ctx, "POST", path, `{"amount_minor":400}`, key("c")).is(200); string(again.Body) != string(got.Body) {
		t.Errorf("%s", again.Body)
	}
	w.do(ctx, "POST", path, `{"amount_minor":400}`).is(200)
	w.do(ctx, "POST", path, `{"amount_minor":500}`).is(422, "invalid_status_transition", "status")
	w.do(ctx, "POST", "/payment-intents/"+p.ID+"/cancel", "").is(422, "invalid_status_transition", "status")
	if types := w.types(); types != "updated updated succeeded" {
		t.Errorf("%s", types)
	}
}

// TestIsolation checks that one tenant's intents are unknown to another tenant and to the other mode.
func TestIsolation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, other := w.tenant(), w.tenant()
	live := caller.With(ctx, func() caller.Caller { c := caller.FromContext(ctx); c.Mode = caller.Live; return c }())
	w.connect(live)
	p := w.post(ctx, w.booked(ctx, 100)).is(201).intent()
	for _, path := range []string{"/payment-intents/" + p.ID, "/payment-intents/" + p.ID + "/cancel", "/payment-intents/" + p.ID + "/capture"} {
		method := "POST"
		if strings.Count(path, "/") == 2 {
			method = "GET"
		}
		w.do(other, method, path, "").is(404, "payment_intent_not_found")
		w.do(live, method, path, "").is(403, "mode_mismatch")
	}
	for _, c := range []context.Context{other, live} {
		if list := w.do(c, "GET", "/payment-intents", "").is(200); strings.Contains(string(list.Body), p.ID) {
			t.Errorf("%s", list.Body)
		}
	}
	w.do(ctx, "GET", "/payment-intents/pi_1%00", "").is(404, "payment_intent_not_found")
}

// byMetadata checks that a list can be filtered by the metadata pairs of the created rows, and that each row matches only its own
// pairs.
func (w *world) byMetadata(ctx context.Context, path string, add func(metadata string) string) {
	w.T.Helper()
	both, one, array := add(`{"order":"17","kind":"vip"}`), add(`{"order":"17"}`), add(`["order","17"]`)
	for query, want := range map[string][]string{
		"metadata[order]=17": {one, both}, "metadata[order]=17&metadata[kind]=vip": {both}, "metadata[order]=1": nil, "metadata[ORDER]=17": nil,
		"metadata[order]=17&booking_id=bk_x": nil, "metadata[order]=17&sort=updated_at": {both, one}, "metadata[17]=order": nil,
	} {
		list := apitest.Decode[struct{ Data []struct{ ID string } }](w.do(ctx, "GET", path+"?"+query, "").is(200).Response)
		var got []string
		for _, row := range list.Data {
			got = append(got, row.ID)
		}
		if !slices.Equal(got, want) {
			w.T.Errorf("%s: %v, want %v, not %s", query, got, want, array)
		}
	}
	for _, c := range []context.Context{w.tenant(), pgtest.CtxOf(w.T, caller.FromContext(ctx).Tenant, caller.Live)} {
		if body := w.do(c, "GET", path+"?metadata[order]=17", "").Body; strings.Contains(string(body), one) {
			w.T.Errorf("another tenant or mode: %s", body)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "pending", 10_000, 10_000, "USD")
	var all []string
	for i := range 7 {
		all = append(all, w.post(ctx, fmt.Sprintf(`{"booking_id":%q,"amount_minor":%d}`, b.ID, 100+i)).is(201).intent().ID)
	}
	w.do(ctx, "POST", "/payment-intents/"+all[2]+"/cancel", "").is(200)
	w.post(ctx, w.booked(ctx, 100)).is(201)
	get := func(query string) apitest.Response {
		return w.do(ctx, "GET", "/payment-intents?booking_id="+b.ID.String()+"&"+query, "").Response
	}
	ids, _ := w.Walk(get, 3)
	slices.Reverse(all)
	if !slices.Equal(ids, all) {
		t.Errorf("%v, want %v", ids, all)
	}
	for query, want := range map[string]int{
		"status=canceled": 1, "status=canceled,requires_payment_method": 8, "booking_id=bk_x": 0, "booking_id=" + b.ID.String(): 7, "": 8,
	} {
		list := apitest.Decode[struct{ Data []intent }](w.do(ctx, "GET", "/payment-intents?"+query, "").is(200).Response)
		if len(list.Data) != want {
			t.Errorf("%q: %d rows", query, len(list.Data))
		}
	}
	w.do(ctx, "GET", "/payment-intents?status=creating", "").is(422, "invalid_request", "status")
	w.byMetadata(ctx, "/payment-intents", func(metadata string) string {
		return w.post(ctx, fmt.Sprintf(`{"booking_id":%q,"amount_minor":100,"metadata":%s}`, b.ID, metadata)).is(201).intent().ID
	})
	w.do(ctx, "GET", "/payment-intents?cursor=x", "").is(400, "invalid_cursor")
}

// TestUncheckedRefusalAfterALostResponse checks that a gateway that accepts no request, or refuses the keys, after a lost response
// does not show whether the intent exists. The intent is not created twice.
func TestUncheckedRefusalAfterALostResponse(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"busy": &domain.BusyError{RetryAfter: time.Second},
		"keys": &domain.RefusedError{Failure: domain.Failure{Code: "api_key_expired", Message: "Expired API key."}, Unread: true},
	} {
		for _, who := range []string{"client", "completer"} {
			t.Run(name+", "+who, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				ctx := w.tenant()
				body := w.booked(ctx, 100)
				w.gateway.After = func(context.Context, string) error { return errLost }
				w.post(ctx, body, key("k")).is(502, "payment_intent_failed")
				w.gateway.After = nil
				w.gateway.Before = func(_ context.Context, call string) error {
					if call == "create" {
						return refusal
					}
					return nil
				}
				w.ahead.Store(int64(time.Minute))
				if who == "client" {
					w.post(ctx, body, key("k")).is(502, "payment_intent_failed")
				} else if err := w.completer.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.gateway.Before = nil
				w.ahead.Store(int64(2 * time.Minute))
				w.post(ctx, body, key("k")).is(201)
				if n := w.gateway.Created(); n != 1 {
					t.Errorf("%d intents were created", n)
				}
			})
		}
	}
}
