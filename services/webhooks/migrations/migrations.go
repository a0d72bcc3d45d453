// Package migrations holds the schema of webhooks.
package migrations

import "embed"

// FS has the migrations in the order of their numbers.
//
//go:embed *.sql
var FS embed.FS
