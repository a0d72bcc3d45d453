package main

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/caarlos0/env/v11"

	"holdfast.dev/services/local/stripe/internal/domain"
)

// settingPrefix is the prefix of the name of each setting.
const settingPrefix = "LOCAL_STRIPE_"

// config holds the settings from the environment. Each name begins with LOCAL_STRIPE_.
type config struct {
	Addr string `env:"HTTP_ADDR" envDefault:"127.0.0.1:12111"` // address to listen on; a loopback address unless ALLOW_ANY_ADDR is set
	Any  bool   `env:"ALLOW_ANY_ADDR"`                         // allow an address that other machines can reach
	Data string `env:"DATA_DIR,required"`                      // folder of the file stripe.db
	// ControlToken grants access to the API under /_control.
	ControlToken string `env:"CONTROL_TOKEN,required"`

	// The account that is created at the start with these keys. If it exists, it gets these keys. Empty keys are generated.
	AccountID       string `env:"ACCOUNT_ID" envDefault:"acct_1HoldfastDemo"`
	AccountCountry  string `env:"ACCOUNT_COUNTRY" envDefault:"US"`
	AccountCurrency string `env:"ACCOUNT_CURRENCY" envDefault:"usd"`
	TestSecret      string `env:"TEST_SECRET_KEY"`
	TestPublishable string `env:"TEST_PUBLISHABLE_KEY"`
	LiveSecret      string `env:"LIVE_SECRET_KEY"`
	LivePublishable string `env:"LIVE_PUBLISHABLE_KEY"`

	FeeBasisPoints int64 `env:"FEE_BASIS_POINTS"` // of a charge; 290 is 2.9 %
	FeeFixed       int64 `env:"FEE_FIXED"`        // per charge, in the currency's smallest unit
	FeeDispute     int64 `env:"FEE_DISPUTE"`      // per dispute, in the currency's smallest unit

	AsyncDelay  time.Duration `env:"ASYNC_DELAY" envDefault:"2s"`           // until a bank payment settles, a pending refund ends, or a dispute opens
	Latency     time.Duration `env:"LATENCY"`                               // of each request, half before and half after its effect
	KeyLifetime time.Duration `env:"IDEMPOTENCY_LIFETIME" envDefault:"24h"` // of idempotency keys

	WebhookRetries []time.Duration `env:"WEBHOOK_RETRY_DELAYS" envDefault:"1s,5s,30s,2m,10m,1h"` // delays before each further attempt
	WebhookTimeout time.Duration   `env:"WEBHOOK_TIMEOUT" envDefault:"10s"`                      // of one attempt
}

func readConfig() (config, error) {
	c, err := env.ParseAsWithOptions[config](env.Options{Prefix: settingPrefix})
	if err != nil {
		return c, err
	}
	return c, c.check()
}

func (c config) check() error {
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return fmt.Errorf(settingPrefix+"HTTP_ADDR: %w", err)
	}
	ip := net.ParseIP(host)
	switch {
	case !c.Any && host != "localhost" && (ip == nil || !ip.IsLoopback()):
		return fmt.Errorf(settingPrefix+"HTTP_ADDR is a loopback address, not %q: anyone with a key can call the stand-in", host)
	case len(c.ControlToken) < 16:
		return errors.New(settingPrefix + "CONTROL_TOKEN has at least 16 characters")
	case c.FeeBasisPoints < 0 || c.FeeFixed < 0 || c.FeeDispute < 0:
		return errors.New("fees are not negative")
	case c.KeyLifetime <= 0 || c.AsyncDelay < 0 || c.Latency < 0 || c.WebhookTimeout <= 0:
		return errors.New("durations are not negative")
	}
	return nil
}

func (c config) account() domain.Account {
	return domain.Account{
		ID: c.AccountID, Country: c.AccountCountry, DefaultCurrency: c.AccountCurrency, Email: "demo@example.com",
		Keys: domain.Keys{
			TestSecret: c.TestSecret, TestPublishable: c.TestPublishable, LiveSecret: c.LiveSecret, LivePublishable: c.LivePublishable,
		},
	}
}
