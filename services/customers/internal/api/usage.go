package api

import (
	"holdfast.dev/libs/usage"

	"holdfast.dev/services/customers/internal/store"
)

// usage returns this service's part of the usage of tenants: what it stores, and what waits.
func (a *API) usage() *usage.Source {
	return &usage.Source{Service: a.Server.Service, DB: a.DB, Waiting: store.Waiting}
}
