// Package domain reaches out.
package domain

import (
	_ "net/http"

	_ "holdfast.dev/services/crossed/internal/store"
)
