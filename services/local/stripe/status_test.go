package main

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
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
		_, err := s.try(intent(500, "eur"), method)
		e := refused(t, err, 402, stripe.ErrorCode(want[0]))
		if string(e.DeclineCode) != want[1] || e.Type != stripe.ErrorTypeCard || e.Msg == "" || e.PaymentMethod == nil || e.RequestID == "" {
			t.Errorf("%s: %+v", method, e)
		}
		pi, err := s.PaymentIntents.Get(e.PaymentIntent.ID, nil)
		if err != nil || pi.Status != stripe.PaymentIntentStatusRequiresPaymentMethod || string(pi.LastPaymentError.Code) != want[0] || pi.PaymentMethod != nil {
			t.Errorf("%s leaves %+v %v", method, pi, err)
		}
		if c := s.charge(pi.ID); c.Status != "failed" || c.FailureCode != want[0] || c.Paid || c.BalanceTransaction != nil {
			t.Errorf("%s: charge %+v", method, c)
		}
		pi, err = s.confirm(pi.ID, "pm_card_mastercard")
		if err != nil || pi.Status != stripe.PaymentIntentStatusSucceeded || pi.LastPaymentError != nil {
			t.Errorf("%s, then another card: %+v %v", method, pi, err)
		}
	}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	s := start(t)
	events := s.receive(s.API, "payment_intent.*")
	// browser confirms as Stripe.js does, and returns the status and the code of the error.
	browser := func(pi *stripe.PaymentIntent, form string) (int, any) {
		status, _, body := s.post("pk_test_demo", "/v1/payment_intents/"+pi.ID+"/confirm", "client_secret="+pi.ClientSecret+"&"+form)
		failure, _ := body["error"].(map[string]any)
		return status, failure["code"]
	}
	pi, err := s.PaymentIntents.New(intent(1000, "usd"))
	if err != nil {
		t.Fatal(err)
	}
	if status, code := browser(pi, "payment_method=pm_card_authenticationRequired"); status != 200 {
		t.Fatalf("%d %v", status, code)
	}
	pi = s.await(pi.ID, stripe.PaymentIntentStatusRequiresAction)
	if pi.NextAction == nil || pi.NextAction.Type != "use_stripe_sdk" || pi.LatestCharge != nil {
		t.Fatalf("next action %+v", pi)
	}
	if status, code := browser(pi, "authentication_outcome=failed"); status != 400 || code != "payment_intent_authentication_failure" {
		t.Errorf("%d %v", status, code)
	}
	after, err := s.PaymentIntents.Get(pi.ID, nil)
	if err != nil || after.Status != stripe.PaymentIntentStatusRequiresPaymentMethod || after.LastPaymentError.Code != "payment_intent_authentication_failure" {
		t.Fatalf("%+v %v", after, err)
	}
	after, err = s.confirm(pi.ID, "pm_card_threeDSecure2Required")
	if err != nil || after.NextAction.RedirectToURL.ReturnURL != "https://shop.example/back" {
		t.Fatalf("%+v %v", after, err)
	}
	if status, code := browser(pi, "authentication_outcome=succeeded"); status != 200 {
		t.Errorf("%d %v", status, code)
	}
	s.await(pi.ID, stripe.PaymentIntentStatusSucceeded)
	want := []string{"payment_intent.created", "payment_intent.requires_action", "payment_intent.payment_failed", "payment_intent.requires_action", "payment_intent.succeeded"}
	until(t, "the events", func() bool { return slices.Equal(events.types(t, pi.ID), want) })

	pi = s.pay(1000, "usd", "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds", stripe.PaymentIntentStatusRequiresAction)
	status, _, body := s.post("pk_test_demo", "/v1/payment_intents/"+pi.ID+"/confirm", "client_secret="+pi.ClientSecret+"&authentication_outcome=succeeded")
	if e, _ := body["error"].(map[string]any); status != 402 || e["decline_code"] != "insufficient_funds" {
		t.Errorf("%d %v", status, body)
	}
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
}

func TestCaptureAndCancel(t *testing.T) {
	t.Parallel()
	s := start(t)
	events := s.receive(s.API)
	hold := func() *stripe.PaymentIntent {
		p := intent(1000, "usd")
		p.CaptureMethod = stripe.String("manual")
		pi, err := s.try(p, "pm_card_visa")
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
	if c := s.charge(pi.ID); !c.Captured || c.AmountCaptured != 700 || c.AmountRefunded != 300 || c.Refunded || c.Refunds.Data[0].BalanceTransaction != nil {
		t.Errorf("%+v", c)
	}
	_, err = s.PaymentIntents.Capture(pi.ID, nil)
	refused(t, err, 400, "payment_intent_unexpected_state")
	want := []string{"payment_intent.created", "charge.succeeded", "payment_intent.amount_capturable_updated", "charge.captured", "payment_intent.succeeded"}
	until(t, "the capture's events", func() bool { return slices.Equal(events.types(t, pi.ID), want) })

	pi = hold()
	after, err = s.PaymentIntents.Cancel(pi.ID, nil)
	if err != nil || after.Status != stripe.PaymentIntentStatusCanceled || after.CanceledAt == 0 {
		t.Fatalf("%+v %v", after, err)
	}
	if c := s.charge(pi.ID); !c.Refunded || c.AmountCaptured != 0 {
		t.Errorf("%+v", c)
	}
	for _, again := range []error{second(s.PaymentIntents.Cancel(pi.ID, nil)), second(s.PaymentIntents.Confirm(pi.ID, nil)), second(s.PaymentIntents.Capture(pi.ID, nil))} {
		if e := refused(t, again, 400, "payment_intent_unexpected_state"); e.PaymentIntent == nil {
			t.Error("the error lacks the intent")
		}
	}
}

func second[T any](_ T, err error) error { return err }

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
		"currency=usd":                             {"parameter_missing", "amount"},
		"amount=500":                               {"parameter_missing", "currency"},
		"amount=5.5&currency=usd":                  {"parameter_invalid_integer", "amount"},
		"amount=0&currency=usd":                    {"parameter_invalid_integer", "amount"},
		"amount=500&currency=":                     {"parameter_invalid_empty", "currency"},
		"amount=500&currency=usd&colour=red":       {"parameter_unknown", "colour"},
		"amount=500&currency=usd&confirm=true":     {"parameter_unknown", "confirm"},
		"amount=500&currency=usd&capture_method=x": {"", "capture_method"},
		"amount=500&currency=usd&receipt_email=x":  {"email_invalid", "receipt_email"},
	} {
		s.invalid("/v1/payment_intents", form, want)
	}
	list := s.PaymentIntents.List(nil)
	if list.Next() {
		t.Errorf("a refused create has left %s", list.PaymentIntent().ID)
	}
	pi, err := s.PaymentIntents.New(intent(500, "usd"))
	if err != nil {
		t.Fatal(err)
	}
	for form, want := range map[string][2]string{
		"":                            {"payment_intent_unexpected_state", ""},
		"payment_method=pm_card_visa": {"", "return_url"},
		"payment_method=pm_nothing":   {"resource_missing", "payment_method"},
		"payment_method_data[type]=card&payment_method_data[card][number]=1234":    {"incorrect_number", "number"},
		"payment_method_data[type]=us_bank_account":                                {"", "payment_method_data[type]"},
		"payment_method=pm_card_visa&return_url=https://a.example&off_session=yes": {"parameter_unknown", "off_session"},
	} {
		s.invalid("/v1/payment_intents/"+pi.ID+"/confirm", form, want)
	}
	if status, _, body := s.post("sk_test_demo", "/v1/payment_intents", "amount=500&currency=usd", "Stripe-Version", "2019-01-01"); status != 400 {
		t.Errorf("another version: %d %v", status, body)
	}
}

// invalid checks that a form is refused with a code because of a parameter.
func (s *standIn) invalid(path, form string, want [2]string) {
	s.t.Helper()
	status, header, body := s.post("sk_test_demo", path, form)
	e, _ := body["error"].(map[string]any)
	code, _ := e["code"].(string)
	param, _ := e["param"].(string)
	if status < 400 || status > 402 || code != want[0] || param != want[1] || header.Get("Request-Id") == "" || header.Get("Stripe-Version") != "2023-10-16" {
		s.t.Errorf("%s: %d %v", form, status, body)
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
		{"GET", "pk_test_demo", path, "", 403},
		{"GET", "sk_live_demo", path, "", 404},
		{"GET", "pk_test_demo", "/v1/payment_intents", "", 403},
		{"POST", "pk_test_demo", "/v1/payment_intents", "amount=500&currency=usd", 403},
		{"POST", "pk_test_demo", path + "/cancel", "", 403},
		{"POST", "pk_test_demo", path + "/confirm", "payment_method=pm_card_visa", 400},
		{"POST", "pk_test_demo", path + "/confirm", "payment_method=pm_card_visa&client_secret=wrong", 400},
		{"POST", "pk_live_demo", path + "/confirm", "payment_method=pm_card_visa&client_secret=" + pi.ClientSecret, 404},
		{"POST", "sk_test_nobody", path, "", 401},
		{"POST", "", path, "", 401},
		{"POST", "sk_test_demo", path, "", 404},
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
	a, err := s.Accounts.Get()
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
		{"limit=100&created[gte]=" + strconv.FormatInt(time.Now().Unix()-60, 10), 25},
		{"limit=100&customer=cus_1", 400},
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
	pi, err := s.PaymentIntents.New(intent(500, "usd"))
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	var charged atomic.Int64
	for range 50 {
		wait.Go(func() {
			p := &stripe.PaymentIntentConfirmParams{PaymentMethod: stripe.String("pm_card_visa"), ReturnURL: stripe.String("https://shop.example")}
			p.SetIdempotencyKey("same")
			got, err := s.PaymentIntents.Confirm(pi.ID, p)
			if err != nil {
				if e := refused(t, err, 409, "idempotency_key_in_use"); e.Type != stripe.ErrorTypeIdempotency {
					t.Errorf("%+v", e)
				}
				return
			}
			if got.Status != stripe.PaymentIntentStatusSucceeded {
				t.Errorf("%+v", got)
			}
			charged.Add(1)
		})
	}
	wait.Wait()
	if charges := s.charges(); charged.Load() == 0 || charges[pi.ID] != 1 {
		t.Fatalf("%d confirmed, charges %v", charged.Load(), charges)
	}
	const create, decline = "amount=500&currency=usd", "return_url=https://a.example&payment_method=pm_card_chargeDeclined"
	if pi, err = s.PaymentIntents.New(intent(500, "usd")); err != nil {
		t.Fatal(err)
	}
	confirm := "/v1/payment_intents/" + pi.ID + "/confirm"
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
		{"sk_test_demo", confirm, decline, "d", 402, false},
		{"sk_test_demo", confirm, decline, "d", 402, true},
	} {
		status, header, body := s.post(c.key, c.path, c.form, "Idempotency-Key", c.token)
		if status != c.status || (header.Get("Idempotent-Replayed") == "true") != c.replayed {
			t.Errorf("%s %s %s with %s: %d %v %v", c.key, c.path, c.form, c.token, status, header, body)
		}
	}
	// A key is in use while its request is running: of requests at the same time, only one is not refused.
	n := 0
	until(t, "a key is in use", func() bool {
		n++
		statuses := make(chan int, 20)
		for range cap(statuses) {
			go func() {
				status, _, _ := s.post("sk_test_demo", "/v1/payment_intents", create, "Idempotency-Key", fmt.Sprint("parallel", n))
				statuses <- status
			}()
		}
		count := map[int]int{}
		for range cap(statuses) {
			count[<-statuses]++
		}
		return count[409] > 0 && count[200] > 0 && count[200]+count[409] == cap(statuses)
	})
}

// TestKeysExpire checks that a request with a key is executed again after the lifetime of keys.
func TestKeysExpire(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *config) { c.KeyLifetime = time.Second })
	replayed := func() bool {
		_, header, _ := s.post("sk_test_demo", "/v1/payment_intents", "amount=500&currency=usd", "Idempotency-Key", "a")
		return header.Get("Idempotent-Replayed") != ""
	}
	if replayed() {
		t.Error("a new key is replayed")
	}
	until(t, "the response is replayed", replayed)
	until(t, "the key expires", func() bool { return !replayed() })
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
	_, _, body = s.send("GET", "sk_test_demo", "/v1/payment_intents?expand[]=data.latest_charge.balance_transaction", "")
	first := body["data"].([]any)[0].(map[string]any)
	charge, _ := first["latest_charge"].(map[string]any)
	movement, _ := charge["balance_transaction"].(map[string]any)
	if movement["net"] != 500.0 {
		t.Errorf("%v", first)
	}
}
