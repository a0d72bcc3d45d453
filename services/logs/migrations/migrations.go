// Package migrations holds this service's schema, newest last. Old code must run on the new schema.
package migrations

import "embed"

// FS contains all migrations.
//
//go:embed *.sql
var FS embed.FS
