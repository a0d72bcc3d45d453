package main

import "holdfast.dev/libs/kafkax"

// Config is the service's own settings beside service.Common.
type Config struct {
	HTTPAddr          string          `env:"HTTP_ADDR" envDefault:"127.0.0.1:8080"` // where it serves
	DatabaseURL       string          `env:"DATABASE_URL,required,notEmpty"`        // in the role <db>_app, under row-level security
	WorkerDatabaseURL string          `env:"WORKER_DATABASE_URL,required,notEmpty"` // in the role <db>_worker, for intake and deliveries
	DatabaseConns     int32           `env:"DATABASE_CONNS" envDefault:"16"`        // of the app role
	WorkerConns       int32           `env:"WORKER_DATABASE_CONNS" envDefault:"16"` // of the worker role
	Kafka             kafkax.Settings // brokers and how they are reached
	KafkaPartitions   int             `env:"KAFKA_PARTITIONS" envDefault:"12"`                        // of the topics, when they are created
	VerifyKeys        string          `env:"CALLER_VERIFY_KEYS,required" secret:"true"`               // <caller>=<kid>:<hex>[;…],…
	CursorKeys        string          `env:"CURSOR_KEYS,required,notEmpty" secret:"true"`             // <kid>:<hex>,…: the first signs
	EncryptionKeys    string          `env:"SERVICE_ENCRYPTION_KEYS,required,notEmpty" secret:"true"` // <kid>:<hex of 32 bytes>,…: the first seals
	AllowedCIDRs      []string        `env:"WEBHOOK_ALLOWED_CIDRS"`                                   // ranges that receivers may be in beside public addresses
	Breaker           bool            `env:"WEBHOOK_BREAKER" envDefault:"true"`                       // an endpoint that fails is given time
	Places            int             `env:"WEBHOOK_MAX_IN_FLIGHT" envDefault:"1024"`                 // attempts on their way at a time, of all endpoints
}

// MigrateConfig is what the migrate command needs.
type MigrateConfig struct {
	URL        string `env:"MIGRATE_DATABASE_URL,required,notEmpty"` // in the role <db>_owner
	AppRole    string `env:"APP_ROLE,required,notEmpty"`             // gets the grants of serving
	WorkerRole string `env:"WORKER_ROLE,required,notEmpty"`          // gets the grants of background work
}
