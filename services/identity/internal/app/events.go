package app

import (
	"context"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

// topic is the topic of identity's events:
//
//	tenant.updated (internal)  a tenant's settings or policy changed. The object is internalapi.Tenant, the
//	                           same as the internal call answers. It is published once, with livemode true,
//	                           and holds for both modes.
const topic = "identity"

func tenantUpdated(ctx context.Context, tx pg.Tx, t domain.Tenant) error {
	object, err := contract.Encode(view.InternalTenant(t))
	if err != nil {
		return err
	}
	return outbox.Add(ctx, tx, outbox.Event{
		Type: "tenant.updated", Topic: topic, AggregateID: t.ID.String(), Version: t.Version,
		Object: object, Internal: true,
	})
}
