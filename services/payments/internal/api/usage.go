package api

import (
	"context"

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/usage"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/store"
)

// usage returns this service's part of the usage of tenants.
func (a *API) usage() *usage.Source {
	return &usage.Source{
		Service: a.Server.Service, DB: a.DB, Waiting: store.Waiting,
		Count: func(ctx context.Context, q pg.Q, day usage.Day, to *internalapi.TenantUsage) error {
			volumes, err := store.Volumes(ctx, q, day.From, day.To)
			for _, v := range volumes {
				to.Payments = append(to.Payments, internalapi.PaymentVolume{Currency: v.Currency, Charged: v.Charged, Refunded: v.Refunded, Disputed: v.Disputed})
			}
			return err
		},
	}
}
