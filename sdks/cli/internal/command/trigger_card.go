package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"holdfast.dev/libs/service"
)

// cardConfig contains the settings for confirming a payment intent like a payer's browser.
type cardConfig struct {
	URL string `env:"STRIPE_URL" envDefault:"https://api.stripe.com"` // URL of Stripe's API, without /v1
	Key string `env:"STRIPE_PUBLISHABLE_KEY"`                         // publishable key of the operator's Stripe account, in test mode
}

// Stripe's test cards by the outcome of the payment.
const (
	goodCard     = "pm_card_visa"
	declinedCard = "pm_card_chargeDeclined"
)

const confirmTimeout = 30 * time.Second

var errNoCard = errors.New("no publishable key configured: set STRIPE_PUBLISHABLE_KEY to the key of the operator's account in test mode, " +
	"or work in the folder of a running platform (its .run/env)")

// cards reads the settings for confirming payments, if any of the steps pays by card.
func cards(steps []step) (c cardConfig, err error) {
	for _, s := range steps {
		if s.card == "" {
			continue
		}
		if err := service.Load(&c, service.EnvFile()); err != nil {
			return c, err
		}
		if !strings.HasPrefix(c.Key, "pk_test_") {
			return c, errNoCard
		}
	}
	return c, nil
}

// confirm confirms a payment intent with a test card. A declined card is the expected result and not an error.
func (c cardConfig) confirm(ctx context.Context, intent, secret, card string) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	form := url.Values{"key": {c.Key}, "client_secret": {secret}, "payment_method": {card}, "return_url": {"https://example.com/"}}
	address := strings.TrimRight(c.URL, "/") + confirmPath(intent)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("confirm the payment: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err // The error contains the method and the URL.
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusPaymentRequired {
		var refused struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		_ = json.NewDecoder(io.LimitReader(res.Body, 1<<16)).Decode(&refused) // without a message, the status is sufficient
		return fmt.Errorf("POST %s: %s %s", address, res.Status, refused.Error.Message)
	}
	return nil
}

func confirmPath(intent string) string { return "/v1/payment_intents/" + intent + "/confirm" }
