package api

import (
	"context"

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/usage"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/webhooks/internal/store"
)

// usage returns this service's part of the usage of tenants.
func (a *API) usage() *usage.Source {
	return &usage.Source{
		Service: a.Server.Service, DB: a.DB, Waiting: store.Waiting,
		Count: func(ctx context.Context, q pg.Q, day usage.Day, to *internalapi.TenantUsage) (err error) {
			if to.Events, err = store.EventsRecorded(ctx, q, day.From, day.To); err != nil {
				return err
			}
			to.Deliveries, err = store.DeliveriesCreated(ctx, q, day.From, day.To)
			return err
		},
	}
}
