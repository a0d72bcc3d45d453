package main

import (
	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/secret"
)

// Config contains the console's own settings, in addition to service.Common.
type Config struct {
	Upstreams  peer.Addresses `env:"UPSTREAM_URL" envDefault:"http://{service}:8080"` // URL of the services that this one calls; UPSTREAM_<NAME>_URL replaces it for one service
	SignKeys   secret.Setting `env:"CALLER_SIGN_KEYS,required" secret:"true"`         // keys to sign calls to other services: <target>=<kid>:<hex>,…
	VerifyKeys secret.Setting `env:"CALLER_VERIFY_KEYS,required" secret:"true"`       // keys of the services that may call this one: <caller>=<kid>:<hex>[;…],…
}
