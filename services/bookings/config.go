package main

import "holdfast.dev/libs/kafkax"

// Config is the service's own settings beside service.Common.
type Config struct {
	HTTPAddr          string          `env:"HTTP_ADDR" envDefault:"127.0.0.1:8080"` // where it serves
	DatabaseURL       string          `env:"DATABASE_URL,required,notEmpty"`        // in the role <db>_app, under row-level security
	WorkerDatabaseURL string          `env:"WORKER_DATABASE_URL,required,notEmpty"` // in the role <db>_worker, for relay and sweepers
	DatabaseConns     int32           `env:"DATABASE_CONNS" envDefault:"16"`        // of the app role; the worker has 4
	Kafka             kafkax.Settings // brokers and how they are reached
	KafkaPartitions   int             `env:"KAFKA_PARTITIONS" envDefault:"12"`            // of the topics, when they are created
	IdentityURL       string          `env:"IDENTITY_URL,required,notEmpty"`              // http://host:port
	CustomersURL      string          `env:"CUSTOMERS_URL,required,notEmpty"`             // http://host:port
	SignKeys          string          `env:"CALLER_SIGN_KEYS,required" secret:"true"`     // <target>=<kid>:<hex>,…
	VerifyKeys        string          `env:"CALLER_VERIFY_KEYS,required" secret:"true"`   // <caller>=<kid>:<hex>[;…],…
	CursorKeys        string          `env:"CURSOR_KEYS,required,notEmpty" secret:"true"` // <kid>:<hex>,…: the first signs
}

// MigrateConfig is what the migrate command needs.
type MigrateConfig struct {
	URL        string `env:"MIGRATE_DATABASE_URL,required,notEmpty"` // in the role <db>_owner
	AppRole    string `env:"APP_ROLE,required,notEmpty"`             // gets the grants of serving
	WorkerRole string `env:"WORKER_ROLE,required,notEmpty"`          // gets the grants of background work
}

// SeedConfig is what the seed command needs.
type SeedConfig struct {
	URL string `env:"DATABASE_URL,required,notEmpty"` // in the role <db>_app
}
