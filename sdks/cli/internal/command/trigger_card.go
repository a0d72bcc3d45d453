package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// cardConfig contains the settings for confirming a payment intent like a payer's browser.
type cardConfig struct{ url, key string }

// Stripe's test cards by the outcome of the payment.
const (
	goodCard     = "pm_card_visa"
	declinedCard = "pm_card_chargeDeclined"
)

const confirmTimeout = 30 * time.Second

var errNoCard = errors.New("no publishable key: pass --stripe-key, or set STRIPE_PUBLISHABLE_KEY, to the key of the operator's account in test mode")

// check returns an error if one of the steps pays by card, and there is no key for it.
func (c cardConfig) check(steps []step) error {
	if slices.ContainsFunc(steps, func(s step) bool { return s.card != "" }) && !strings.HasPrefix(c.key, "pk_test_") {
		return usage(errNoCard)
	}
	return nil
}

// confirm confirms a payment intent with a test card. A declined card is the expected result and not an error.
func (c cardConfig) confirm(ctx context.Context, intent, secret, card string) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	form := url.Values{"key": {c.key}, "client_secret": {secret}, "payment_method": {card}, "return_url": {"https://example.com/"}}
	address := strings.TrimRight(c.url, "/") + confirmPath(intent)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("confirm the payment: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return withoutAddress(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusPaymentRequired {
		var refused struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		_ = json.NewDecoder(io.LimitReader(res.Body, 1<<16)).Decode(&refused) // without a message, the status is sufficient
		return fmt.Errorf("%s %s", res.Status, refused.Error.Message)
	}
	return nil
}

func confirmPath(intent string) string { return "/v1/payment_intents/" + intent + "/confirm" }

// withoutAddress returns an error without the method and the URL, which the caller adds.
func withoutAddress(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}
