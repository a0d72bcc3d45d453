// Code generated from the Config structs by make gen. DO NOT EDIT.

package proto

// secretSettings are the settings that each service must read from its Secret.
var secretSettings = map[string][]string{
	"identity":  {"CALLER_SIGN_KEYS", "CALLER_VERIFY_KEYS", "DATABASE_URL", "REDIS_URL", "SERVICE_ENCRYPTION_KEYS", "WORKER_DATABASE_URL"},
	"customers": {"CALLER_SIGN_KEYS", "CALLER_VERIFY_KEYS", "CURSOR_KEYS", "DATABASE_URL", "WORKER_DATABASE_URL"},
	"bookings":  {"CALLER_SIGN_KEYS", "CALLER_VERIFY_KEYS", "CURSOR_KEYS", "DATABASE_URL", "SERVICE_ENCRYPTION_KEYS", "WORKER_DATABASE_URL"},
	"payments":  {"CALLER_SIGN_KEYS", "CALLER_VERIFY_KEYS", "CURSOR_KEYS", "DATABASE_URL", "SERVICE_ENCRYPTION_KEYS", "WORKER_DATABASE_URL"},
	"webhooks":  {"CALLER_VERIFY_KEYS", "CURSOR_KEYS", "DATABASE_URL", "SERVICE_ENCRYPTION_KEYS", "WORKER_DATABASE_URL"},
	"logs":      {"CALLER_VERIFY_KEYS", "CURSOR_KEYS", "DATABASE_URL", "WORKER_DATABASE_URL"},
	"console":   {"CALLER_SIGN_KEYS", "CALLER_VERIFY_KEYS"},
	"gateway":   {"CALLER_SIGN_KEYS", "REDIS_URL"},
}

// migrationSettings are the settings that the migration of each database must read from its Secret.
var migrationSettings = []string{"APP_ROLE", "MIGRATE_DATABASE_URL", "WORKER_ROLE"}
