// Package api is in order.
package api

import (
	_ "holdfast.dev/services/crossed/internal/app"
	_ "holdfast.dev/services/crossed/internal/store"
)
