// Package store contains the SQL of the service. Functions that read take a pg.Q, functions that write take a pg.Tx. Readers run in
// the app role for one tenant and mode. Writers run in the worker role, because a batch contains requests of many tenants.
package store
