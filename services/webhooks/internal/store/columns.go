package store

import (
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// keyRow is the key of an endpoint as three columns.
type keyRow struct {
	TenantID   ids.Tenant
	Livemode   bool
	EndpointID domain.EndpointID
}

// key returns the columns as a key.
func (r keyRow) key() domain.EndpointKey {
	return domain.EndpointKey{Tenant: r.TenantID, Livemode: r.Livemode, Endpoint: r.EndpointID}
}

// keyColumns returns the endpoint key of each row as three arrays for unnest.
func keyColumns[R any](rows []R, key func(R) domain.EndpointKey) (tenants [][16]byte, modes []bool, endpoints [][16]byte) {
	tenants = pg.Column(rows, func(r R) [16]byte { return key(r).Tenant.UUID() })
	modes = pg.Column(rows, func(r R) bool { return key(r).Livemode })
	endpoints = pg.Column(rows, func(r R) [16]byte { return key(r).Endpoint.UUID() })
	return tenants, modes, endpoints
}

// itself is the key function of a list of keys.
func itself(k domain.EndpointKey) domain.EndpointKey { return k }

// notNil returns an empty array for nil, which would be NULL.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
