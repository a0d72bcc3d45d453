package app

import (
	"context"
	"errors"
	"fmt"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

// EndpointGrants disables the endpoints of OAuth grants that have ended. Identity, which knows the grants, asks which of them hold endpoints,
// and reports those that have ended. It repeats this, so that nothing is missed while a service is down.
type EndpointGrants struct {
	Worker    *pg.DB // worker role: reads the endpoints of all tenants
	Endpoints *Endpoints
}

// MaxGrants is the limit of a page of grants in proto/internal/webhooks.yaml.
const MaxGrants = 500

// List returns up to MaxGrants grants of all tenants that hold enabled endpoints, after the given one.
func (a *EndpointGrants) List(ctx context.Context, after string) (list []store.EndpointGrant, err error) {
	err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		list, err = store.EndpointGrants(ctx, tx, after, MaxGrants)
		return err
	})
	return list, err
}

// End disables the enabled endpoints that the grants hold, and returns their number. A grant that fails does not prevent the end of others.
func (a *EndpointGrants) End(ctx context.Context, grants []store.EndpointGrant) (disabled int, err error) {
	var failed []error
	for _, g := range grants {
		n, err := a.end(ctx, g)
		if err != nil {
			failed = append(failed, fmt.Errorf("endpoints of %s: %w", g.Holder, err))
		}
		disabled += n
	}
	return disabled, errors.Join(failed...)
}

func (a *EndpointGrants) end(ctx context.Context, g store.EndpointGrant) (disabled int, err error) {
	ctx = caller.With(ctx, caller.Service("webhooks", g.TenantID, caller.ModeOf(g.Livemode)))
	err = a.Endpoints.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		list, err := store.EndpointsOfGrant(ctx, tx, g.Holder)
		if err != nil {
			return err
		}
		disabled = len(list)
		for _, e := range list {
			if err := a.disable(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	return disabled, err
}

// disable disables one endpoint that the transaction has locked, and fails its pending deliveries.
func (a *EndpointGrants) disable(ctx context.Context, tx pg.Tx, before domain.Endpoint) error {
	waiting, err := store.PendingDeliveries(ctx, tx, before.ID, domain.MaxCounted)
	if err != nil {
		return err
	}
	after := before.WithoutGrant(waiting)
	if err := a.Endpoints.updateQueue(ctx, tx, before, after); err != nil {
		return err
	}
	if after, err = store.UpdateEndpoint(ctx, tx, after); err != nil {
		return err
	}
	if a.Endpoints.Wake != nil {
		tx.AfterCommit(a.Endpoints.Wake)
	}
	return publishHealth(ctx, tx, "disabled", after, after.Version)
}
