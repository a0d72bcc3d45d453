package main

import (
	"time"

	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/platform"
)

// Config are the service's own settings, besides service.Common.
type Config struct {
	Platform       platform.Config
	Upstreams      peer.Addresses `env:"UPSTREAM_URL" envDefault:"http://{service}:8080"`         // of the services that it calls; UPSTREAM_<NAME>_URL for one
	SignKeys       string         `env:"CALLER_SIGN_KEYS,required" secret:"true"`                 // <target>=<kid>:<hex>,…
	CursorKeys     string         `env:"CURSOR_KEYS,required,notEmpty" secret:"true"`             // <kid>:<hex>,…: the first signs
	EncryptionKeys string         `env:"SERVICE_ENCRYPTION_KEYS,required,notEmpty" secret:"true"` // <kid>:<hex of 32 bytes>,…: the first seals
	StripeURL      string         `env:"STRIPE_URL" envDefault:"https://api.stripe.com"`          // of Stripe's API, without /v1
	StripeTimeout  time.Duration  `env:"STRIPE_TIMEOUT" envDefault:"10s"`                         // of one call
	ReconcileEvery time.Duration  `env:"RECONCILE_INTERVAL" envDefault:"1h"`                      // between two comparisons of a gateway account with Stripe
	ReconcileGrace time.Duration  `env:"RECONCILE_GRACE" envDefault:"30s"`                        // how long a difference lasts before it counts: an event may be on its way
	StripeInFlight int            `env:"STRIPE_IN_FLIGHT" envDefault:"64"`                        // the most calls at once of one gateway account, in this process
}
