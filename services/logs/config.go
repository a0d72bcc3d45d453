package main

import (
	"fmt"
	"time"

	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/secret"
)

// Config contains the service's own settings, in addition to service.Common.
type Config struct {
	Platform   platform.Config
	CursorKeys secret.Setting `env:"CURSOR_KEYS,required,notEmpty" secret:"true"`     // <kid>:<hex>,…; the first key signs
	Retention  time.Duration  `env:"REQUEST_LOG_RETENTION" envDefault:"168h"`         // how long requests are stored, 24h to 2160h
	MaxRows    int            `env:"REQUEST_LOG_MAX_PER_TENANT" envDefault:"1000000"` // maximum number of stored requests of a tenant in one mode; the oldest ones are deleted
}

// The bounds of the retention.
const (
	minRetention = 24 * time.Hour
	maxRetention = 90 * 24 * time.Hour
)

func (c *Config) check() error {
	if c.Retention < minRetention || c.Retention > maxRetention {
		return fmt.Errorf("REQUEST_LOG_RETENTION must be from %s to %s, not %s", minRetention, maxRetention, c.Retention)
	}
	if c.MaxRows < 1 {
		return fmt.Errorf("REQUEST_LOG_MAX_PER_TENANT must be greater than 0, not %d", c.MaxRows)
	}
	return nil
}
