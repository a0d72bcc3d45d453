// Package app knows HTTP.
package app

import (
	_ "net/http"

	_ "holdfast.dev/services/crossed/internal/store"
	_ "holdfast.dev/services/crossed/internal/view"
)
