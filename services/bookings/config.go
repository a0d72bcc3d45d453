package main

import (
	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/platform"
)

// Config is the service's own settings beside service.Common.
type Config struct {
	Platform       platform.Config
	Upstreams      peer.Addresses `env:"UPSTREAM_URL" envDefault:"http://{service}:8080"`         // of the services that it calls; UPSTREAM_<NAME>_URL for one
	SignKeys       string         `env:"CALLER_SIGN_KEYS,required" secret:"true"`                 // <target>=<kid>:<hex>,…
	CursorKeys     string         `env:"CURSOR_KEYS,required,notEmpty" secret:"true"`             // <kid>:<hex>,…: the first signs
	EncryptionKeys string         `env:"SERVICE_ENCRYPTION_KEYS,required,notEmpty" secret:"true"` // <kid>:<hex of 32 bytes>,…: the first seals
}

// SeedConfig is what the seed command needs.
type SeedConfig struct {
	URL string `env:"DATABASE_URL,required,notEmpty"` // in the role <db>_app
}
