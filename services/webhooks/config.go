package main

import "holdfast.dev/libs/platform"

// Config is the service's own settings beside service.Common.
type Config struct {
	Platform       platform.Config
	CursorKeys     string   `env:"CURSOR_KEYS,required,notEmpty" secret:"true"`             // <kid>:<hex>,…: the first signs
	EncryptionKeys string   `env:"SERVICE_ENCRYPTION_KEYS,required,notEmpty" secret:"true"` // <kid>:<hex of 32 bytes>,…: the first seals
	AllowedCIDRs   []string `env:"WEBHOOK_ALLOWED_CIDRS"`                                   // ranges that receivers may be in beside public addresses
	Breaker        bool     `env:"WEBHOOK_BREAKER" envDefault:"true"`                       // an endpoint that fails is given time
	MaxConcurrency int      `env:"WEBHOOK_MAX_IN_FLIGHT" envDefault:"1024"`                 // the most attempts in flight, of all endpoints
	MaxBytes       int      `env:"WEBHOOK_MAX_BYTES" envDefault:"67108864"`                 // the most bytes of the bodies in flight
	Streams        int      `env:"STREAMS_PER_TENANT" envDefault:"100"`                     // open at once in this process, then 429
}

// defaults are those that differ from the ones of the shared settings.
func defaults() Config { return Config{Platform: platform.Config{WorkerDatabaseMaxConns: 16}} }
