// Package app opens a database by itself and knows HTTP.
package app

import (
	_ "database/sql"
	_ "net/http"

	_ "holdfast.dev/services/crossed/internal/store"
	_ "holdfast.dev/services/crossed/internal/view"
)
