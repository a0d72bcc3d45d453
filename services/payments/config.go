package main

import (
	"time"

	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/secret"
)

// Config contains the service's own settings, in addition to service.Common.
type Config struct {
	Platform       platform.Config
	Upstreams      peer.Addresses `env:"UPSTREAM_URL" envDefault:"http://{service}:8080"`         // URL of the services that this one calls; UPSTREAM_<NAME>_URL replaces it for one service
	SignKeys       secret.Setting `env:"CALLER_SIGN_KEYS,required" secret:"true"`                 // keys to sign calls to other services: <target>=<kid>:<hex>,…
	CursorKeys     secret.Setting `env:"CURSOR_KEYS,required,notEmpty" secret:"true"`             // <kid>:<hex>,…; the first key signs
	EncryptionKeys secret.Setting `env:"SERVICE_ENCRYPTION_KEYS,required,notEmpty" secret:"true"` // <kid>:<hex of 32 bytes>,…; the first key encrypts
	StripeURL      string         `env:"STRIPE_URL" envDefault:"https://api.stripe.com"`          // URL of Stripe's API, without /v1
	ReconcileGrace time.Duration  `env:"RECONCILE_GRACE" envDefault:"30s"`                        // how long a difference must last before it counts, because an event may still arrive
}
