package main

import "holdfast.dev/libs/platform"

// Config are the service's own settings, besides service.Common.
type Config struct {
	Platform   platform.Config
	CursorKeys string `env:"CURSOR_KEYS,required,notEmpty" secret:"true"` // <kid>:<hex>,…: the first signs
}
