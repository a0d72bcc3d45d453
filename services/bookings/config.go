package main

import (
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/pg"
)

// Config is the service's own settings beside service.Common.
type Config struct {
	DatabaseURL       string          `env:"DATABASE_URL,required,notEmpty"`        // in the role <db>_app, under row-level security
	WorkerDatabaseURL string          `env:"WORKER_DATABASE_URL,required,notEmpty"` // in the role <db>_worker, for relay and sweepers
	DatabaseConns     int32           `env:"DATABASE_CONNS" envDefault:"16"`        // of the app role; the worker has 4
	Database          pg.Limits       // of one request's statements
	Kafka             kafkax.Settings // brokers and how they are reached
	Upstreams         peer.Addresses  `env:"UPSTREAM_URL" envDefault:"http://{service}:8080"` // of the services that it calls; UPSTREAM_<NAME>_URL for one
	SignKeys          string          `env:"CALLER_SIGN_KEYS,required" secret:"true"`         // <target>=<kid>:<hex>,…
	VerifyKeys        string          `env:"CALLER_VERIFY_KEYS,required" secret:"true"`       // <caller>=<kid>:<hex>[;…],…
	CursorKeys        string          `env:"CURSOR_KEYS,required,notEmpty" secret:"true"`     // <kid>:<hex>,…: the first signs
}

// SeedConfig is what the seed command needs.
type SeedConfig struct {
	URL string `env:"DATABASE_URL,required,notEmpty"` // in the role <db>_app
}
