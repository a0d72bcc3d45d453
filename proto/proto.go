// Package proto contains the contracts that all processes share: the public API, the events, and the internal calls. The
// packages below it contain the generated code.
package proto

import _ "embed"

// OpenAPI is the whole public contract, which our own programs read: openapi.yaml with everything derived from it. Package view derives
// the documents that the gateway serves.
//
//go:embed api/openapi.yaml
var OpenAPI []byte

// Platform is the contract of the platform API, which identity serves.
//
//go:embed platform.yaml
var Platform []byte

// InternalIdentity are the internal calls of identity.
//
//go:embed internal/identity.yaml
var InternalIdentity []byte

// InternalErasure are the internal calls of every service with a database to erase a tenant.
//
//go:embed internal/erasure.yaml
var InternalErasure []byte

// InternalBookings are the internal calls of bookings.
//
//go:embed internal/bookings.yaml
var InternalBookings []byte

// InternalCustomers are the internal calls of customers.
//
//go:embed internal/customers.yaml
var InternalCustomers []byte

// InternalPayments are the internal calls of payments.
//
//go:embed internal/payments.yaml
var InternalPayments []byte

// InternalWebhooks are the internal calls of webhooks.
//
//go:embed internal/webhooks.yaml
var InternalWebhooks []byte

// InternalUsage are the internal calls that each service with a database answers about a tenant's usage and background work.
//
//go:embed internal/usage.yaml
var InternalUsage []byte
