package domain

import (
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// ErrErasureNotFound reports that a tenant does not exist or is not closing.
var ErrErasureNotFound = apperr.New(apperr.NotFound, "tenant_erasure_not_found", "The tenant does not exist or is not closing.")

// Erasure is the erasure of a tenant from all services. It is all that remains of an erased tenant.
type Erasure struct {
	TenantID  ids.Tenant
	ClosedBy  string // who closed the tenant, and from where
	StartedAt time.Time
	ErasedAt  *time.Time
	Deleted   int64            // rows of this service
	Services  map[string]int64 // number of deleted rows, by the name of a service that has finished
}

// Closing is a tenant whose erasure is due.
type Closing struct {
	TenantID ids.Tenant
	WaitsFor string // what a service has to complete before; empty: nothing is known
}
