// Package app holds identity's use cases. It owns the transactions: each change, its audit record, its event
// and the signal to the gateways are committed together.
package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// Teller tells the gateways, through Redis, to think again about keys that they remember.
type Teller interface {
	Publish(ctx context.Context, invalidations []domain.Invalidation) error
}

// App is identity's use cases over one database.
type App struct {
	DB     *pg.DB // app role
	Worker *pg.DB // worker role
	Redis  Teller
	Scopes []string // the catalogue
	Now    func() time.Time
	Log    *slog.Logger
	Wake   func() // wakes the relay after a commit; nil where none runs in this process
}

// scope returns ctx for work on one tenant and mode by whoever manages all tenants.
func scope(ctx context.Context, tenant ids.Tenant, mode caller.Mode) context.Context {
	return caller.With(ctx, caller.Service("identity", tenant, mode))
}

// now is the time as the columns keep it.
func (a *App) now() time.Time { return a.Now().UTC().Truncate(time.Microsecond) }

// change is what an audit record says beside its place in the chain. A nil side was not, or is no more.
type change struct {
	action, object string
	before, after  any
}

func (a *App) audit(ctx context.Context, tx pg.Tx, by domain.Origin, c change) error {
	who := caller.FromContext(ctx)
	r := domain.Record{
		TenantID: who.Tenant, Livemode: who.Live(), At: a.now(),
		Actor: by.Actor, Source: by.Source, Action: c.action, Object: c.object,
	}
	var err error
	if r.Before, err = side(c.before); err != nil {
		return err
	}
	if r.After, err = side(c.after); err != nil {
		return err
	}
	return store.AppendAudit(ctx, tx, r)
}

func side(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return raw, nil
}
