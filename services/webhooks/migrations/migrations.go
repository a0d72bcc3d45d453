// Package migrations contains the schema of webhooks.
package migrations

import "embed"

// FS contains the migrations in the order of their numbers.
//
//go:embed *.sql
var FS embed.FS
