// Package migrations embeds identity's schema.
package migrations

import "embed"

// FS is all migrations, in goose's format.
//
//go:embed *.sql
var FS embed.FS

// Exempt are the tables that are not under row-level security by tenant and mode, each with the reason. A test
// fails on any other table without it.
var Exempt = map[string]string{
	"tenants":        "a tenant spans both modes: under a policy by tenant alone",
	"audit_heads":    "one chain per tenant, over both modes: under a policy by tenant alone",
	"schema_common":  "goose's own",
	"schema_service": "goose's own",
}
