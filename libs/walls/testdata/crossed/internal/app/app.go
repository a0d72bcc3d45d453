// Package app opens a database by itself.
package app

import (
	_ "database/sql"

	_ "holdfast.dev/services/crossed/internal/store"
	_ "holdfast.dev/services/crossed/internal/view"
)
