package main

import (
	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/secret"
)

// Config contains the service's own settings, in addition to service.Common.
type Config struct {
	Platform       platform.Config
	CursorKeys     secret.Setting `env:"CURSOR_KEYS,required,notEmpty" secret:"true"`             // <kid>:<hex>,…; the first key signs
	EncryptionKeys secret.Setting `env:"SERVICE_ENCRYPTION_KEYS,required,notEmpty" secret:"true"` // <kid>:<hex of 32 bytes>,…; the first key encrypts
	AllowedCIDRs   []string       `env:"WEBHOOK_ALLOWED_CIDRS"`                                   // address ranges of receivers to allow in addition to public addresses
	Breaker        bool           `env:"WEBHOOK_BREAKER" envDefault:"true"`                       // pause deliveries to endpoints that fail repeatedly
	MaxConcurrency int            `env:"WEBHOOK_MAX_IN_FLIGHT" envDefault:"1024"`                 // maximum number of attempts in flight, over all endpoints
	MaxBytes       int            `env:"WEBHOOK_MAX_BYTES" envDefault:"67108864"`                 // maximum size of the bodies in flight
}

// defaults returns the defaults that differ from those of the shared settings.
func defaults() Config { return Config{Platform: platform.Config{WorkerDatabaseMaxConns: 16}} }
