// Package store contains the SQL of the service. Functions that read take a pg.Q, functions that write take a pg.Tx. Each statement
// of the app role contains the caller's tenant and mode, which row-level security checks again. Statements for all tenants, such as
// those of the intake and the dispatcher, run in the worker role and contain the tenant and the mode of each row.
package store
