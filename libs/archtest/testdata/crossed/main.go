// Package main has forbidden imports on purpose.
package main

import (
	_ "database/sql"

	_ "holdfast.dev/services/crossed/internal/api"
	_ "holdfast.dev/services/crossed/internal/helpers"
)

func main() {}
