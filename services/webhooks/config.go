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
}

// defaults returns the defaults that differ from those of the shared settings.
func defaults() Config { return Config{Platform: platform.Config{WorkerDatabaseMaxConns: 16}} }
