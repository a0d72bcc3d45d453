package main

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76"
)

// TestDeclines checks that each of Stripe's declined cards returns its code, creates a failed charge, and requires another payment
// method.
func TestDeclines(t *testing.T) {
	t.Parallel()
	s := start(t)
	for method, want := range map[string][2]string{
		"pm_card_chargeDeclined":                       {"card_declined", "generic_decline"},
		"pm_card_visa_chargeDeclinedInsufficientFunds": {"card_declined", "insufficient_funds"},
		"pm_card_chargeDeclined_LostCard":              {"card_declined", "lost_card"},
		"pm_card_chargeDeclinedExpiredCard":            {"expired_card", ""},
		"pm_card_chargeDeclinedIncorrectCvc":           {"incorrect_cvc", ""},
		"pm_card_chargeDeclinedProcessingError":        {"processing_error", ""},
	} {
		_, err := s.PaymentIntents.New(paying(500, "eur", method))
		e := refused(t, err, 402, stripe.ErrorCode(want[0]))
		if string(e.DeclineCode) != want[1] || e.Type != stripe.ErrorTypeCard || e.Msg == "" || e.PaymentMethod == nil || e.RequestID == "" {
			t.Errorf("%s: %+v", method, e)
		}
		pi, err := s.PaymentIntents.Get(e.PaymentIntent.ID, nil)
		if err != nil || pi.Status != stripe.PaymentIntentStatusRequiresPaymentMethod || string(pi.LastPaymentError.Code) != want[0] || pi.PaymentMethod != nil {
			t.Errorf("%s leaves %+v %v", method, pi, err)
		}
		c, err := s.Charges.Get(pi.LatestCharge.ID, nil)
		if err != nil || c.Status != "failed" || c.FailureCode != want[0] || c.Paid || c.BalanceTransaction != nil {
			t.Errorf("%s: charge %+v %v", method, c, err)
		}
		pi, err = s.PaymentIntents.Confirm(pi.ID, &stripe.PaymentIntentConfirmParams{PaymentMethod: stripe.String("pm_card_mastercard")})
		if err != nil || pi.Status != stripe.PaymentIntentStatusSucceeded || pi.LastPaymentError != nil {
			t.Errorf("%s, then another card: %+v %v", method, pi, err)
		}
	}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	s := start(t)
	events := s.receive(s.API, "payment_intent.*")
	pi := s.pay(1000, "usd", "pm_card_authenticationRequired", stripe.PaymentIntentStatusRequiresAction)
	if pi.NextAction == nil || pi.NextAction.Type != "use_stripe_sdk" || pi.LatestCharge != nil {
		t.Fatalf("next action %+v", pi)
	}
	s.control("POST", "payment_intents/"+pi.ID+"/authenticate", map[string]string{"outcome": "failed"}, nil)
	after, err := s.PaymentIntents.Get(pi.ID, nil)
	if err != nil || after.Status != stripe.PaymentIntentStatusRequiresPaymentMethod || after.LastPaymentError.Code != "payment_intent_authentication_failure" {
		t.Fatalf("%+v %v", after, err)
	}
	after, err = s.PaymentIntents.Confirm(pi.ID, &stripe.PaymentIntentConfirmParams{PaymentMethod: stripe.String("pm_card_threeDSecure2Required"), ReturnURL: stripe.String("https://shop.example/back")})
	if err != nil || after.NextAction.RedirectToURL.ReturnURL != "https://shop.example/back" {
		t.Fatalf("%+v %v", after, err)
	}
	s.control("POST", "payment_intents/"+pi.ID+"/authenticate", nil, nil)
	s.await(pi.ID, stripe.PaymentIntentStatusSucceeded)
	want := []string{"payment_intent.created", "payment_intent.requires_action", "payment_intent.payment_failed", "payment_intent.requires_action", "payment_intent.succeeded"}
	until(t, "the events", func() bool { return slices.Equal(events.types(t, pi.ID), want) })

	// The stand-in's own parameter also ends an authentication.
	pi = s.pay(1000, "usd", "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds", stripe.PaymentIntentStatusRequiresAction)
	status, _, body := s.post("pk_test_demo", "/v1/payment_intents/"+pi.ID+"/confirm", "client_secret="+pi.ClientSecret+"&authentication_outcome=succeeded")
	if e, _ := body["error"].(map[string]any); status != 402 || e["decline_code"] != "insufficient_funds" {
		t.Errorf("%d %v", status, body)
	}
	p := paying(1000, "usd", "pm_card_authenticationRequired")
	p.OffSession = stripe.Bool(true)
	_, err = s.PaymentIntents.New(p)
	refused(t, err, 402, "authentication_required")
}

func TestProcessing(t *testing.T) {
	t.Parallel()
	s := start(t)
	events := s.receive(s.API)
	pi := s.pay(1000, "usd", "pm_usBankAccount_success", stripe.PaymentIntentStatusProcessing)
	_, err := s.PaymentIntents.Cancel(pi.ID, nil)
	refused(t, err, 400, "payment_intent_unexpected_state")
	s.await(pi.ID, stripe.PaymentIntentStatusSucceeded)
	want := []string{"payment_intent.created", "charge.pending", "payment_intent.processing", "charge.succeeded", "payment_intent.succeeded"}
	until(t, "the events", func() bool { return slices.Equal(events.types(t, pi.ID), want) })

	failed := s.pay(1000, "usd", "pm_usBankAccount_insufficientFunds", stripe.PaymentIntentStatusProcessing)
	after := s.await(failed.ID, stripe.PaymentIntentStatusRequiresPaymentMethod)
	if after.LastPaymentError == nil || after.LastPaymentError.Code != "insufficient_funds" {
		t.Errorf("%+v", after.LastPaymentError)
	}
	stuck := s.pay(1000, "jpy", "pm_usBankAccount_processing", stripe.PaymentIntentStatusProcessing)
	s.control("POST", "payment_intents/"+stuck.ID+"/settle", map[string]string{"outcome": "succeeded"}, nil)
	s.await(stuck.ID, stripe.PaymentIntentStatusSucceeded)
}

func TestCaptureAndCancel(t *testing.T) {
	t.Parallel()
	s := start(t)
	events := s.receive(s.API)
	hold := func() *stripe.PaymentIntent {
		p := paying(1000, "usd", "pm_card_visa")
		p.CaptureMethod = stripe.String("manual")
		pi, err := s.PaymentIntents.New(p)
		if err != nil || pi.Status != stripe.PaymentIntentStatusRequiresCapture || pi.AmountCapturable != 1000 {
			t.Fatalf("%+v %v", pi, err)
		}
		return pi
	}
	pi := hold()
	_, err := s.Refunds.New(&stripe.RefundParams{PaymentIntent: &pi.ID})
	refused(t, err, 400, "")
	_, err = s.PaymentIntents.Capture(pi.ID, &stripe.PaymentIntentCaptureParams{AmountToCapture: stripe.Int64(1001)})
	refused(t, err, 400, "amount_too_large")
	after, err := s.PaymentIntents.Capture(pi.ID, &stripe.PaymentIntentCaptureParams{AmountToCapture: stripe.Int64(700)})
	if err != nil || after.Status != stripe.PaymentIntentStatusSucceeded || after.AmountReceived != 700 || after.AmountCapturable != 0 {
		t.Fatalf("%+v %v", after, err)
	}
	c, err := s.Charges.Get(after.LatestCharge.ID, nil)
	if err != nil || !c.Captured || c.AmountCaptured != 700 || c.AmountRefunded != 300 || c.Refunded {
		t.Errorf("%+v %v", c, err)
	}
	_, err = s.PaymentIntents.Capture(pi.ID, nil)
	refused(t, err, 400, "payment_intent_unexpected_state")
	want := []string{"payment_intent.created", "charge.succeeded", "payment_intent.amount_capturable_updated", "charge.captured", "payment_intent.succeeded"}
	until(t, "the capture's events", func() bool { return slices.Equal(events.types(t, pi.ID), want) })

	pi = hold()
	after, err = s.PaymentIntents.Cancel(pi.ID, &stripe.PaymentIntentCancelParams{CancellationReason: stripe.String("abandoned")})
	if err != nil || after.Status != stripe.PaymentIntentStatusCanceled || after.CanceledAt == 0 || after.CancellationReason != "abandoned" {
		t.Fatalf("%+v %v", after, err)
	}
	if c, err := s.Charges.Get(after.LatestCharge.ID, nil); err != nil || !c.Refunded || c.AmountCaptured != 0 {
		t.Errorf("%+v %v", c, err)
	}
	for _, again := range []error{second(s.PaymentIntents.Cancel(pi.ID, nil)), second(s.PaymentIntents.Confirm(pi.ID, nil)), second(s.PaymentIntents.Capture(pi.ID, nil))} {
		if e := refused(t, again, 400, "payment_intent_unexpected_state"); e.PaymentIntent == nil {
			t.Error("the error lacks the intent")
		}
	}
	_, err = s.PaymentIntents.Cancel(hold().ID, &stripe.PaymentIntentCancelParams{CancellationReason: stripe.String("boredom")})
	refused(t, err, 400, "")
}

func second[T any](_ T, err error) error { return err }

func TestUpdate(t *testing.T) {
	t.Parallel()
	s := start(t)
	pi, err := s.PaymentIntents.New(intent(1000, "usd"))
	if err != nil {
		t.Fatal(err)
	}
	p := &stripe.PaymentIntentParams{Amount: stripe.Int64(1200), Description: stripe.String("Balance"), PaymentMethod: stripe.String("pm_card_visa")}
	p.AddMetadata("a", "1")
	p.AddMetadata("b", "2")
	pi, err = s.PaymentIntents.Update(pi.ID, p)
	if err != nil || pi.Amount != 1200 || pi.Status != stripe.PaymentIntentStatusRequiresConfirmation || len(pi.Metadata) != 2 {
		t.Fatalf("%+v %v", pi, err)
	}
	if pi, err = s.PaymentIntents.Confirm(pi.ID, nil); err != nil || pi.AmountReceived != 1200 {
		t.Fatalf("%+v %v", pi, err)
	}
	_, err = s.PaymentIntents.Update(pi.ID, &stripe.PaymentIntentParams{Amount: stripe.Int64(900)})
	refused(t, err, 400, "payment_intent_unexpected_state")
	p = &stripe.PaymentIntentParams{}
	p.AddMetadata("a", "")
	if pi, err = s.PaymentIntents.Update(pi.ID, p); err != nil || len(pi.Metadata) != 1 || pi.Metadata["b"] != "2" {
		t.Errorf("%+v %v", pi.Metadata, err)
	}
}

func TestAmountsAndCurrencies(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, c := range []struct {
		amount   int64
		currency string
		code     stripe.ErrorCode // empty: taken
	}{
		{50, "usd", ""},
		{49, "usd", "amount_too_small"},
		{99999999, "usd", ""},
		{100000000, "usd", "amount_too_large"},
		{50, "jpy", ""},
		{49, "jpy", "amount_too_small"},
		{30, "gbp", ""},
		{29, "gbp", "amount_too_small"},
		{5120, "kwd", ""},
		{5124, "kwd", "invalid_charge_amount"},
		{500, "isk", ""},
		{555, "isk", "invalid_charge_amount"},
		{500, "EUR", ""},
		{999999999, "jpy", ""},
	} {
		_, err := s.PaymentIntents.New(intent(c.amount, c.currency))
		if c.code == "" && err != nil {
			t.Errorf("%d %s: %v", c.amount, c.currency, err)
		}
		if c.code != "" {
			refused(t, err, 400, c.code)
		}
	}
	_, err := s.PaymentIntents.New(intent(500, "xyz"))
	if e := refused(t, err, 400, ""); e.Param != "currency" {
		t.Errorf("%+v", e)
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	s := start(t)
	for form, want := range map[string][2]string{
		"currency=usd":                            {"parameter_missing", "amount"},
		"amount=500":                              {"parameter_missing", "currency"},
		"amount=5.5&currency=usd":                 {"parameter_invalid_integer", "amount"},
		"amount=0&currency=usd":                   {"parameter_invalid_integer", "amount"},
		"amount=500&currency=":                    {"parameter_invalid_empty", "currency"},
		"amount=500&currency=usd&colour=red":      {"parameter_unknown", "colour"},
		"amount=500&currency=usd&confirm=maybe":   {"", "confirm"},
		"amount=500&currency=usd&receipt_email=x": {"email_invalid", "receipt_email"},
		"amount=500&currency=usd&confirm=true":    {"payment_intent_unexpected_state", ""},
		"amount=500&currency=usd&confirm=true&payment_method=pm_card_visa":                              {"", "return_url"},
		"amount=500&currency=usd&payment_method=pm_nothing":                                             {"resource_missing", "payment_method"},
		"amount=500&currency=usd&payment_method_data[type]=card&payment_method_data[card][number]=1234": {"incorrect_number", "number"},
	} {
		status, header, body := s.post("sk_test_demo", "/v1/payment_intents", form)
		e, _ := body["error"].(map[string]any)
		code, _ := e["code"].(string)
		param, _ := e["param"].(string)
		if status < 400 || status > 402 || code != want[0] || param != want[1] || header.Get("Request-Id") == "" || header.Get("Stripe-Version") != "2023-10-16" {
			t.Errorf("%s: %d %v", form, status, body)
		}
	}
	if status, _, body := s.post("sk_test_demo", "/v1/payment_intents", "amount=500&currency=usd", "Stripe-Version", "2019-01-01"); status != 400 {
		t.Errorf("another version: %d %v", status, body)
	}
	list := s.PaymentIntents.List(nil)
	if list.Next() {
		t.Errorf("a refused create has left %s", list.PaymentIntent().ID)
	}
}

func TestPublishableKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	pi, err := s.PaymentIntents.New(&stripe.PaymentIntentParams{Amount: stripe.Int64(500), Currency: stripe.String("usd")})
	if err != nil {
		t.Fatal(err)
	}
	path := "/v1/payment_intents/" + pi.ID
	for _, c := range []struct {
		method, key, path, form string
		want                    int
	}{
		{"GET", "pk_test_demo", path, "", 400},
		{"GET", "pk_test_demo", path + "?client_secret=wrong", "", 400},
		{"GET", "pk_test_demo", path + "?client_secret=" + pi.ClientSecret, "", 200},
		{"GET", "pk_live_demo", path + "?client_secret=" + pi.ClientSecret, "", 404},
		{"GET", "sk_live_demo", path, "", 404},
		{"GET", "pk_test_demo", "/v1/payment_intents", "", 403},
		{"POST", "pk_test_demo", "/v1/payment_intents", "amount=500&currency=usd", 403},
		{"POST", "pk_test_demo", path + "/cancel", "", 403},
		{"POST", "pk_test_demo", path + "/confirm", "payment_method=pm_card_visa", 400},
		{"POST", "sk_test_nobody", path, "", 401},
		{"POST", "", path, "", 401},
	} {
		status, _, body := s.send(c.method, c.key, c.path, c.form)
		if status != c.want {
			t.Errorf("%s %s with %s: %d %v", c.method, c.path, c.key, status, body)
		}
		if _, leaks := body["metadata"]; leaks {
			t.Errorf("a publishable key sees %v", body)
		}
	}
	status, _, body := s.post("", path+"/confirm", "key=pk_test_demo&client_secret="+pi.ClientSecret+
		"&payment_method_data[type]=card&payment_method_data[card][number]=4242+4242+4242+4242&payment_method_data[card][exp_month]=12&payment_method_data[card][exp_year]=34&payment_method_data[card][cvc]=123")
	if status != 200 || body["status"] != "succeeded" || body["latest_charge"] != nil {
		t.Errorf("confirm as Stripe.js sends it: %d %v", status, body)
	}
	_, err = s.with("sk_test_" + "unknown0000000000").Accounts.Get()
	refused(t, err, 401, "")
	a, err := s.with("rk_test_demo").Accounts.Get()
	if err != nil || a.ID != demoAccount || a.Country != "US" || a.DefaultCurrency != "usd" {
		t.Errorf("%+v %v", a, err)
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	s := start(t)
	var ids []string
	for range 25 {
		pi, err := s.PaymentIntents.New(intent(500, "usd"))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, pi.ID)
	}
	slices.Reverse(ids)
	var got []string
	p := &stripe.PaymentIntentListParams{}
	p.Limit = stripe.Int64(10)
	for it := s.PaymentIntents.List(p); it.Next(); {
		got = append(got, it.PaymentIntent().ID)
	}
	if !slices.Equal(got, ids) {
		t.Errorf("listed %v, want %v", got, ids)
	}
	p = &stripe.PaymentIntentListParams{}
	p.Limit, p.EndingBefore, p.Single = stripe.Int64(3), stripe.String(ids[10]), true
	got = nil
	for it := s.PaymentIntents.List(p); it.Next(); {
		got = append(got, it.PaymentIntent().ID)
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(ids[7:10])); !slices.Equal(got, want) {
		t.Errorf("before: %v, want %v", got, want)
	}
	for _, c := range []struct {
		form string
		want int
	}{
		{"limit=101", 400},
		{"limit=0", 400},
		{"starting_after=pi_none", 400},
		{"limit=100&created[gte]=" + strconv.FormatInt(time.Now().Unix()+60, 10), 0},
		{"limit=100&created[lte]=" + strconv.FormatInt(time.Now().Unix()+60, 10), 25},
		{"limit=100&customer=cus_1", 0},
	} {
		status, _, body := s.send("GET", "sk_test_demo", "/v1/payment_intents?"+c.form, "")
		data, _ := body["data"].([]any)
		if status != 200 && status != c.want || status == 200 && len(data) != c.want {
			t.Errorf("%s: %d %d", c.form, status, len(data))
		}
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	s := start(t)
	var wait sync.WaitGroup
	var mu sync.Mutex
	created := map[string]int{}
	for range 50 {
		wait.Go(func() {
			p := paying(500, "usd", "pm_card_visa")
			p.SetIdempotencyKey("same")
			pi, err := s.PaymentIntents.New(p)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				if e := refused(t, err, 409, "idempotency_key_in_use"); e.Type != stripe.ErrorTypeIdempotency {
					t.Errorf("%+v", e)
				}
				return
			}
			created[pi.ID]++
		})
	}
	wait.Wait()
	var counters struct {
		Charges map[string]int `json:"charges_per_intent"`
	}
	s.control("GET", "counters", nil, &counters)
	if len(created) != 1 || len(counters.Charges) != 1 {
		t.Fatalf("intents %v, charges %v", created, counters.Charges)
	}
	const create = "amount=500&currency=usd&payment_method=pm_card_visa"
	for _, c := range []struct {
		key, path, form, token string
		status                 int
		replayed               bool
	}{
		{"sk_test_demo", "/v1/payment_intents", create, "a", 200, false},
		{"sk_test_demo", "/v1/payment_intents", create, "a", 200, true},
		{"sk_test_demo", "/v1/payment_intents", create + "&amount=501", "a", 400, false},
		{"sk_test_demo", "/v1/refunds", create, "a", 400, false},
		{"sk_live_demo", "/v1/payment_intents", create, "a", 200, false},
		{"sk_test_demo", "/v1/payment_intents", "amount=x&currency=usd", "b", 400, false},
		{"sk_test_demo", "/v1/payment_intents", create, "b", 200, false}, // a response to invalid parameters is not stored
		{"sk_test_demo", "/v1/payment_intents", "amount=1&currency=usd", "c", 400, false},
		{"sk_test_demo", "/v1/payment_intents", "amount=1&currency=usd", "c", 400, true},
		{"sk_test_demo", "/v1/payment_intents", create + "&confirm=true&use_stripe_sdk=true&payment_method=pm_card_chargeDeclined", "d", 402, false},
		{"sk_test_demo", "/v1/payment_intents", create + "&confirm=true&use_stripe_sdk=true&payment_method=pm_card_chargeDeclined", "d", 402, true},
	} {
		status, header, body := s.post(c.key, c.path, c.form, "Idempotency-Key", c.token)
		if status != c.status || (header.Get("Idempotent-Replayed") == "true") != c.replayed {
			t.Errorf("%s %s %s with %s: %d %v %v", c.key, c.path, c.form, c.token, status, header, body)
		}
	}
	s.control("POST", "clock", map[string]string{"by": "24h"}, nil)
	if _, header, _ := s.post("sk_test_demo", "/v1/payment_intents", create, "Idempotency-Key", "a"); header.Get("Idempotent-Replayed") != "" {
		t.Error("a key outlives its 24 hours")
	}
	// A key is in use while its request is running: of two requests at the same time, the second one is refused.
	n := 0
	until(t, "a key is in use", func() bool {
		n++
		s.control("POST", "faults", map[string]any{"action": "delay", "wait": "2s", "method": "POST", "times": 1}, nil)
		statuses := make(chan int, 2)
		for range 2 {
			go func() {
				status, _, _ := s.post("sk_test_demo", "/v1/payment_intents", create, "Idempotency-Key", fmt.Sprint("slow", n))
				statuses <- status
			}()
		}
		refused, created := <-statuses, <-statuses
		return refused == 409 && created == 200
	})
}

// TestExpansions checks that an expansion that does not exist is refused before the request has an effect.
func TestExpansions(t *testing.T) {
	t.Parallel()
	s := start(t)
	status, _, body := s.post("sk_test_demo", "/v1/payment_intents", "amount=500&currency=usd&expand[]=colour")
	if status != 400 || s.intents() != 0 {
		t.Errorf("%d %v, %d intents", status, body, s.intents())
	}
	s.pay(500, "usd", "pm_card_visa", stripe.PaymentIntentStatusSucceeded)
	_, _, body = s.send("GET", "sk_test_demo", "/v1/payment_intents?expand[]=data.latest_charge.balance_transaction&expand[]=data.payment_method", "")
	first := body["data"].([]any)[0].(map[string]any)
	charge, _ := first["latest_charge"].(map[string]any)
	movement, _ := charge["balance_transaction"].(map[string]any)
	if method, _ := first["payment_method"].(map[string]any); movement["net"] != 500.0 || method["_case"] != nil || method["type"] != "card" {
		t.Errorf("%v", first)
	}
}
