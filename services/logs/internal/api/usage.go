package api

import (
	"context"

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/usage"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/logs/internal/store"
)

// usage returns this service's part of the usage of tenants. A day is measured when the counts that the gateways had sent by then are
// added, and counts that arrive afterwards belong to the next day.
func (a *API) usage() *usage.Source {
	return &usage.Source{
		Service: a.Server.Service, DB: a.DB, Ready: a.CaughtUp,
		Seal: func(ctx context.Context, day usage.Day) error {
			return a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.SealRequestCounts(ctx, tx, day.From) })
		},
		Count: func(ctx context.Context, q pg.Q, day usage.Day, to *internalapi.TenantUsage) error {
			list, err := store.RequestCounts(ctx, q, day.From)
			classes := map[string]*int64{
				"read": &to.RequestsRead, "write": &to.RequestsWrite, "export": &to.RequestsExport, "stream": &to.RequestsStream,
				"rejected": &to.RequestsRejected, "invalid": &to.RequestsUnauthenticated,
			}
			for _, c := range list {
				if n := classes[c.Class]; n != nil { // a class of a later version is not measured
					*n = c.Requests
				}
			}
			to.RequestsRejected += to.RequestsUnauthenticated
			return err
		},
	}
}
