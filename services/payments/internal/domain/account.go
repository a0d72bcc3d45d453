package domain

import (
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
)

// Stripe is the only provider.
const Stripe = "stripe"

// Account is an operator's account at a payment gateway, in one mode.
type Account struct {
	ID             AccountID
	Provider       string
	Account        string // the gateway's id, acct_…
	Country        string // ISO 3166-1
	PublishableKey string
	SecretKey      Secret
	SecretLast4    string
	Events         EventsState
	Version        int64
	CreatedAt      time.Time
	UpdatedAt      time.Time
	DisconnectedAt *time.Time
}

// Secret is a text that is never logged.
type Secret string

// String implements fmt.Stringer.
func (Secret) String() string { return "***" }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return "***" }

// Last4 returns the part of a secret that can be shown.
func Last4(secret string) string {
	if len(secret) <= 12 {
		return ""
	}
	return secret[len(secret)-4:]
}

// Keys are the keys with which an operator connects an account.
type Keys struct {
	Publishable string
	Secret      Secret
	Webhook     Secret // signs the gateway's webhooks; "" if none is given
}

// Check checks the form of the keys for a mode. A key of the other mode would move real money in tests, or none in live mode.
func (k Keys) Check(live bool) error {
	mode := "test"
	if live {
		mode = "live"
	}
	return apperr.Join(
		checkKey("secret_key", string(k.Secret), "sk_"+mode+"_", "rk_"+mode+"_"),
		checkKey("publishable_key", k.Publishable, "pk_"+mode+"_"),
		checkWebhookSecret(string(k.Webhook)),
	)
}

// keyBytes bounds a key. Stripe's keys have about 107 bytes.
const keyBytes = 255

func checkKey(field, key string, prefixes ...string) error {
	for _, p := range prefixes {
		if strings.HasPrefix(key, p) && len(key) > len(p) && len(key) <= keyBytes {
			return nil
		}
	}
	return apperr.Field(field, "Must be a key of this mode that starts with %s.", strings.Join(prefixes, " or "))
}

func checkWebhookSecret(s string) error {
	if s == "" || strings.HasPrefix(s, "whsec_") && len(s) <= keyBytes {
		return nil
	}
	return apperr.Field("webhook_secret", "Must be the signing secret of the webhook endpoint. It starts with whsec_.")
}
