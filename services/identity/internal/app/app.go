// Package app contains the use cases, one method each. A use case opens its transaction itself, because the command line specifies
// the tenant and mode. A change, its audit record, its event, and its invalidations are committed together. Redis is written
// afterwards.
package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// Publisher publishes invalidations to the gateways. store.Redis implements it.
type Publisher interface {
	Publish(ctx context.Context, invalidations []domain.Invalidation) error
}

// Mailer sends messages to operators. peers.Mailer implements it.
type Mailer interface {
	Send(ctx context.Context, to, subject, text string) error
}

// App contains identity's use cases on one database.
type App struct {
	DB        *pg.DB // app role
	Worker    *pg.DB // worker role
	Redis     Publisher
	Scopes    []string // the catalogue
	Passwords *Passwords
	Metrics   *Metrics
	Box       *crypt.Box // seals secrets that must be read again
	Now       func() time.Time
	Log       *slog.Logger
	Mailer    Mailer // sends the links of operators' invitations; nil: they are returned in the response
	AuthURL   string // base URL of these links
	Wake      func() // wakes the relay after a commit; nil if none runs in this process

	ClosingPeriod time.Duration // how long the data of a closing tenant can be read
}

// scope returns ctx with this service as the caller, for a tenant and mode.
func scope(ctx context.Context, tenant ids.Tenant, mode caller.Mode) context.Context {
	return caller.With(ctx, caller.Service("identity", tenant, mode))
}

// now returns the time with the precision of the columns.
func (a *App) now() time.Time { return a.Now().UTC().Truncate(time.Microsecond) }

// change is the content of an audit record without its place in the chain. A nil side means that the object did not exist then.
type change struct {
	action, object string
	before, after  any
}

// audit appends a change to the audit log of the caller's tenant.
func (a *App) audit(ctx context.Context, tx pg.Tx, by domain.Origin, c change) error {
	r := domain.Record{At: a.now(), Actor: by.Actor, Source: by.Source, Action: c.action, Object: c.object}
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
