// Package domain reaches out.
package domain

import (
	"net/http"
	"time"

	_ "holdfast.dev/services/crossed/internal/store"
)

// Method reads the clock.
func Method() string { return http.MethodGet + time.Now().String() }
