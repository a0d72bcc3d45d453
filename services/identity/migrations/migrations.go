// Package migrations embeds identity's schema.
package migrations

import "embed"

// FS contains all migrations, in goose's format.
//
//go:embed *.sql
var FS embed.FS

// Exempt lists the tables without row-level security by tenant and mode, each with the reason. A test fails for any other such
// table.
var Exempt = map[string]string{
	"tenants":           "a tenant spans both modes: under a policy by tenant alone",
	"audit_heads":       "one chain per tenant, over both modes: under a policy by tenant alone",
	"memberships":       "a membership holds for both modes: under a policy by tenant alone",
	"oauth_apps":        "an app works in both modes: under a policy by tenant alone",
	"saved_views":       "of a membership, for both modes: under a policy by tenant alone",
	"operators":         "an operator is a person, who may be a member of several tenants",
	"operator_links":    "of an operator",
	"recovery_codes":    "of an operator",
	"operator_sessions": "of an operator",
	"known_browsers":    "of an operator",
	"operator_endings":  "of an operator",
	"form_drafts":       "of an operator",
	"platform_keys":     "of the platform, which manages all tenants",
	"usage_collections": "of the platform: how far the recording of each day has come",
	"sign_in_attempts":  "counted before anybody is known",
	"installation":      "ID and version of the platform, without a row of a tenant",
	"outbox_partitions": "numbers of the platform, without a row of a tenant",
	"tenant_erasures":   "what remains of erased tenants, and hides their rows",
	"schema_common":     "goose's own",
	"schema_service":    "goose's own",
}
