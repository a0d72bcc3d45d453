// Package tenantstate stores a service's copy of the states of tenants, which identity owns. Requests do not need it, because the
// gateway rejects those of a suspended tenant. It is for work without a credential, such as deliveries and public addresses. The
// service creates the table tenant_states in its own migration.
package tenantstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/internalapi"
)

// ErrSuspended is the response to a request for data of a suspended tenant.
var ErrSuspended = apperr.New(apperr.Forbidden, "tenant_suspended", "The platform has suspended the tenant.")

// EventType is the type of identity's events about tenants.
const EventType = "tenant.updated"

// Events records the states from identity's events about tenants.
type Events struct {
	DB      *pg.DB
	Service string // the name of the consumer
	// Changed runs in the transaction that records a new state, with a caller of the tenant and of each of its modes. paused says whether
	// deliveries wait. It can be nil.
	Changed func(ctx context.Context, tx pg.Tx, paused bool) error
}

// Handle is a kafkax.Handler. A state belongs to both modes and is recorded in each of them. A repeated event changes nothing, and
// an older one never replaces a newer state. Other types are ignored.
func (h *Events) Handle(ctx context.Context, m kafkax.Message) error {
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return err
	}
	from, err := outbox.Caller(h.Service, e)
	if err != nil || e.GetType() != EventType {
		return err
	}
	var body internalapi.Tenant
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return kafkax.Poison(fmt.Errorf("tenant body: %w", err))
	}
	status := internalapi.TenantActive
	if body.Status != nil {
		status = *body.Status
	}
	for _, mode := range []caller.Mode{caller.Live, caller.Test} {
		from.Mode = mode
		err := h.DB.Tx(caller.With(ctx, from), func(ctx context.Context, tx pg.Tx) error {
			return h.record(ctx, tx, status, e.GetResourceVersion())
		})
		if err != nil {
			return fmt.Errorf("record the state of a tenant: %w", err)
		}
	}
	return nil
}

// record writes the state of the caller's tenant and mode, unless the recorded one is at least as new.
func (h *Events) record(ctx context.Context, tx pg.Tx, status internalapi.TenantStatus, version int64) error {
	old, err := pg.One(ctx, tx, pgx.RowTo[string], errUnknown,
		`select status from tenant_states where tenant_id = @tenant and livemode = @live for update`, pg.Args{})
	if errors.Is(err, errUnknown) {
		old, err = string(internalapi.TenantActive), nil
	}
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `
		insert into tenant_states as s (tenant_id, livemode, status, version) values (@tenant, @live, @status, @version)
		on conflict (tenant_id, livemode) do update set status = excluded.status, version = excluded.version
		where s.version < excluded.version`, pg.Args{"status": string(status), "version": version})
	if err != nil || tag.RowsAffected() == 0 || old == string(status) || h.Changed == nil {
		return err
	}
	return h.Changed(ctx, tx, status != internalapi.TenantActive)
}

var errUnknown = errors.New("the state of the tenant is not recorded")

// Suspended reports whether nothing of the caller's tenant can be read: it is suspended or being erased. The data of a closing tenant
// can be read. A tenant without a recorded state is active.
func Suspended(ctx context.Context, q pg.Q) (bool, error) {
	return pg.One(ctx, q, pgx.RowTo[bool], errUnknown,
		`select exists (select from tenant_states where tenant_id = @tenant and livemode = @live and status in ('suspended', 'erasing'))`, pg.Args{})
}
