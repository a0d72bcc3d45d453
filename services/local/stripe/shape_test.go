package main

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-mock/embedded"
)

// specification is the part of Stripe's OpenAPI specification that the test reads.
type specification struct {
	Components struct {
		Schemas map[string]struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
		} `json:"schemas"`
	} `json:"components"`
}

// TestShapesMatchStripe checks that each response contains all fields that Stripe's OpenAPI specification requires, and no field
// that the specification does not define.
func TestShapesMatchStripe(t *testing.T) {
	t.Parallel()
	var spec specification
	if err := json.Unmarshal(embedded.OpenAPISpec, &spec); err != nil {
		t.Fatal(err)
	}
	s := start(t)
	s.receive(s.API)
	pi := s.pay(1000, "usd", "pm_card_visa", stripe.PaymentIntentStatusSucceeded)
	bank := s.pay(1000, "usd", "pm_usBankAccount_success", stripe.PaymentIntentStatusProcessing)
	s.pay(1000, "usd", "pm_card_authenticationRequired", stripe.PaymentIntentStatusRequiresAction)
	_, err := s.try(intent(1000, "usd"), "pm_card_chargeDeclined")
	refused(t, err, 402, "card_declined")
	r, err := s.Refunds.New(&stripe.RefundParams{PaymentIntent: &pi.ID, Amount: stripe.Int64(100)})
	if err != nil {
		t.Fatal(err)
	}
	s.control("POST", "refunds/"+r.ID+"/finish", map[string]string{"outcome": "failed"}, nil)
	s.control("POST", "charges/"+pi.LatestCharge.ID+"/dispute", nil, nil)
	s.await(bank.ID, stripe.PaymentIntentStatusSucceeded)
	unpaid := s.pay(1000, "usd", "pm_usBankAccount_noAccount", stripe.PaymentIntentStatusProcessing)
	s.await(unpaid.ID, stripe.PaymentIntentStatusRequiresPaymentMethod)
	lists := map[string][]any{}
	for path, object := range map[string]string{
		"payment_intents": "payment_intent", "charges": "charge", "refunds": "refund", "disputes": "dispute", "events": "event",
		"account": "account",
	} {
		status, _, body := s.send("GET", "sk_test_demo", "/v1/"+path, "")
		list, isList := body["data"].([]any)
		if !isList {
			list = []any{body}
		}
		if status != 200 || len(list) == 0 {
			t.Errorf("%s: %d %v", path, status, body)
		}
		lists[object] = list
	}
	_, _, endpoint := s.post("sk_test_demo", "/v1/webhook_endpoints", "url=http://127.0.0.1:9&enabled_events[]=*")
	lists["webhook_endpoint"] = []any{endpoint}
	var all map[string][]any
	s.control("GET", "accounts/"+demoAccount+"/snapshot", nil, &all)
	lists["balance_transaction"] = all["balance_transactions"]
	for _, item := range lists["payment_intent"] {
		fields, _ := item.(map[string]any)
		if failure, ok := fields["last_payment_error"].(map[string]any); ok {
			lists["payment_method"] = append(lists["payment_method"], failure["payment_method"])
		}
	}
	if len(lists["balance_transaction"]) == 0 || len(lists["payment_method"]) != 2 {
		t.Errorf("%v", lists)
	}
	for object, list := range lists {
		schema := spec.Components.Schemas[object]
		for _, item := range list {
			fields, _ := item.(map[string]any)
			if fields["object"] != object {
				t.Errorf("%s: object %v", object, fields["object"])
			}
			for name := range maps.Keys(fields) {
				if _, known := schema.Properties[name]; !known {
					t.Errorf("%s has %q, which Stripe's OpenAPI lacks", object, name)
				}
			}
			for _, name := range schema.Required {
				if _, there := fields[name]; !there {
					t.Errorf("%s lacks %q", object, name)
				}
			}
		}
	}
}
