package main

import (
	"slices"
	"testing"

	"github.com/stripe/stripe-go/v76"
)

func TestCreateConfirmRetrieve(t *testing.T) {
	t.Parallel()
	s := start(t)
	events := s.receive(s.API)
	p := intent(2000, "usd")
	p.AddMetadata("booking_id", "bk_1")
	p.Description, p.ReceiptEmail = stripe.String("Deposit"), stripe.String("grace@example.com")
	pi, err := s.PaymentIntents.New(p)
	if err != nil || pi.Status != stripe.PaymentIntentStatusRequiresPaymentMethod || pi.ClientSecret == "" || pi.Metadata["booking_id"] != "bk_1" {
		t.Fatalf("%+v %v", pi, err)
	}
	pi, err = s.confirm(pi.ID, "pm_card_visa")
	if err != nil || pi.Status != stripe.PaymentIntentStatusSucceeded || pi.AmountReceived != 2000 || pi.LatestCharge == nil {
		t.Fatalf("%+v %v", pi, err)
	}
	get := &stripe.PaymentIntentParams{}
	get.AddExpand("latest_charge.balance_transaction")
	pi, err = s.PaymentIntents.Get(pi.ID, get)
	if err != nil || pi.LatestCharge.Amount != 2000 || pi.LatestCharge.BalanceTransaction.Net != 2000 || pi.LatestCharge.PaymentMethodDetails.Card.Last4 != "4242" {
		t.Fatalf("%+v %v", pi, err)
	}
	want := []string{"payment_intent.created", "charge.succeeded", "payment_intent.succeeded"}
	until(t, "three events", func() bool { return slices.Equal(events.types(t, pi.ID), want) })
}
