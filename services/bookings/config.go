package main

import (
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
}

// SeedConfig contains the settings of the seed command.
type SeedConfig struct {
	URL    string `env:"DATABASE_URL,required,notEmpty" secret:"url"` // URL of the database in the role <db>_app
	Pooler bool   `env:"DATABASE_POOLER"`                             // true: DATABASE_URL is the address of a pooler in transaction mode
}
