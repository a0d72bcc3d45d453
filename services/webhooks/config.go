package main

import (
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
)

// Config is the service's own settings beside service.Common.
type Config struct {
	DatabaseURL       string          `env:"DATABASE_URL,required,notEmpty"`        // in the role <db>_app, under row-level security
	WorkerDatabaseURL string          `env:"WORKER_DATABASE_URL,required,notEmpty"` // in the role <db>_worker, for intake and deliveries
	DatabaseConns     int32           `env:"DATABASE_CONNS" envDefault:"16"`        // of the app role
	WorkerConns       int32           `env:"WORKER_DATABASE_CONNS" envDefault:"16"` // of the worker role
	Database          pg.Limits       // of one request's statements
	Kafka             kafkax.Settings // brokers and how they are reached
	VerifyKeys        string          `env:"CALLER_VERIFY_KEYS,required" secret:"true"`               // <caller>=<kid>:<hex>[;…],…
	CursorKeys        string          `env:"CURSOR_KEYS,required,notEmpty" secret:"true"`             // <kid>:<hex>,…: the first signs
	EncryptionKeys    string          `env:"SERVICE_ENCRYPTION_KEYS,required,notEmpty" secret:"true"` // <kid>:<hex of 32 bytes>,…: the first seals
	AllowedCIDRs      []string        `env:"WEBHOOK_ALLOWED_CIDRS"`                                   // ranges that receivers may be in beside public addresses
	Breaker           bool            `env:"WEBHOOK_BREAKER" envDefault:"true"`                       // an endpoint that fails is given time
	Places            int             `env:"WEBHOOK_MAX_IN_FLIGHT" envDefault:"1024"`                 // attempts on their way at a time, of all endpoints
	Bytes             int             `env:"WEBHOOK_MAX_BYTES" envDefault:"67108864"`                 // of the bodies on their way at a time
	Streams           int             `env:"STREAMS_PER_TENANT" envDefault:"100"`                     // open at once in this process, then 429
}
