// Package store is the only layer with SQL. Readers take a pg.Q, writers a pg.Tx. Each statement of the app role specifies the
// caller's tenant and mode, and row-level security checks them again.
package store
