package store

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// Erased is an intent whose personal data was cleared.
type Erased struct {
	ID        domain.IntentID
	GatewayID domain.GatewayID // "" if the gateway does not know it
	Version   int64
}

// Compare orders intents by their ids.
func (e Erased) Compare(other Erased) int {
	x, y := e.ID.UUID(), other.ID.UUID()
	return bytes.Compare(x[:], y[:])
}

// EraseIntents clears the personal data of up to limit intents of a customer after the given one, in the order of their ids.
func EraseIntents(ctx context.Context, tx pg.Tx, customer domain.CustomerID, after domain.IntentID, limit int) ([]Erased, error) {
	list, err := pg.Many(ctx, tx, pgx.RowToStructByName[Erased], `
		with next as (
			select p.tenant_id, p.livemode, p.id from payment_intents p
			where p.tenant_id = @tenant and p.livemode = @live and p.customer_id = @customer and (@after::uuid is null or p.id > @after)
			order by p.id limit @limit for update
		), pairs as (
			delete from payment_intent_metadata m using next n where m.tenant_id = n.tenant_id and m.livemode = n.livemode and m.intent_id = n.id
		)
		update payment_intents p set description = null, receipt_email = null, metadata = null, version = p.version + 1,
			updated_at = clock_timestamp()
		from next n where n.tenant_id = p.tenant_id and n.livemode = p.livemode and n.id = p.id
		returning p.id, coalesce(p.gateway_id, '') as gateway_id, p.version`,
		pg.Args{"customer": customer, "after": after, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("erase payment intents: %w", err)
	}
	return list, nil
}

// EraseRefunds clears the personal data of the refunds of intents.
func EraseRefunds(ctx context.Context, tx pg.Tx, intents []Erased) ([]domain.RefundID, error) {
	list := make([]domain.IntentID, 0, len(intents))
	for _, e := range intents {
		list = append(list, e.ID)
	}
	found, err := pg.Many(ctx, tx, pgx.RowTo[domain.RefundID], `
		with parts as (
			select distinct a.refund_id from refund_allocations a
			where a.tenant_id = @tenant and a.livemode = @live and a.intent_id = any(@intents)
		), pairs as (
			delete from refund_metadata m using parts p where m.tenant_id = @tenant and m.livemode = @live and m.refund_id = p.refund_id
		)
		update refunds r set metadata = null, reference = null, version = r.version + 1, updated_at = clock_timestamp()
		from parts p where r.tenant_id = @tenant and r.livemode = @live and r.id = p.refund_id and (r.metadata is not null or r.reference is not null)
		returning r.id`, pg.Args{"intents": list})
	if err != nil {
		return nil, fmt.Errorf("erase refunds: %w", err)
	}
	return found, nil
}

// EraseManualRefunds clears the personal data of the refunds that were handed back to a customer.
func EraseManualRefunds(ctx context.Context, tx pg.Tx, customer domain.CustomerID) ([]domain.RefundID, error) {
	found, err := pg.Many(ctx, tx, pgx.RowTo[domain.RefundID], `
		with mine as (
			select r.id from refunds r where r.tenant_id = @tenant and r.livemode = @live and r.customer_id = @customer
				and (r.metadata is not null or r.reference is not null)
		), pairs as (
			delete from refund_metadata m using mine r where m.tenant_id = @tenant and m.livemode = @live and m.refund_id = r.id
		)
		update refunds r set metadata = null, reference = null, version = r.version + 1, updated_at = clock_timestamp()
		from mine m where r.tenant_id = @tenant and r.livemode = @live and r.id = m.id returning r.id`, pg.Args{"customer": customer})
	if err != nil {
		return nil, fmt.Errorf("erase manual refunds: %w", err)
	}
	return found, nil
}

// EraseOwedNotes clears the notes that people made about owed refunds of the bookings of intents.
func EraseOwedNotes(ctx context.Context, tx pg.Tx, intents []Erased) error {
	list := make([]domain.IntentID, 0, len(intents))
	for _, e := range intents {
		list = append(list, e.ID)
	}
	return pg.Exec(ctx, tx, "erase notes of owed refunds", `update automatic_refunds o set closed_note = null
		where o.tenant_id = @tenant and o.livemode = @live and o.closed_note is not null and o.booking_id in (
			select p.booking_id from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and p.id = any(@intents))`,
		pg.Args{"intents": list})
}

// Sweep deletes up to limit rows of all tenants and modes that are older than before, and returns how many. tx has the worker role.
type Sweep func(ctx context.Context, tx pg.Tx, before time.Time, limit int) (int64, error)

// The sweeps.
var (
	// SweepEvents deletes processed events of the gateway.
	SweepEvents = sweep(`delete from gateway_events where ctid = any(array(
		select e.ctid from gateway_events e where e.due_at is null and e.received_at < $1 order by e.received_at limit $2))
		and due_at is null`)
	// SweepIntents deletes intents that the gateway refused to create.
	SweepIntents = sweep(`with gone as (
			select p.tenant_id, p.livemode, p.id from payment_intents p
			where p.status = 'refused' and p.created_at < $1 order by p.created_at limit $2
		), pairs as (
			delete from payment_intent_metadata m using gone g where m.tenant_id = g.tenant_id and m.livemode = g.livemode and m.intent_id = g.id
		)
		delete from payment_intents p using gone g where p.tenant_id = g.tenant_id and p.livemode = g.livemode and p.id = g.id`)
	// SweepRefunds deletes refunds that the gateway refused to create.
	SweepRefunds = sweep(`with gone as (
			select r.tenant_id, r.livemode, r.id from refunds r
			where r.status = 'refused' and not r.shown and r.created_at < $1 order by r.created_at limit $2
		), pairs as (
			delete from refund_metadata m using gone g where m.tenant_id = g.tenant_id and m.livemode = g.livemode and m.refund_id = g.id
		), parts as (
			delete from refund_allocations a using gone g where a.tenant_id = g.tenant_id and a.livemode = g.livemode and a.refund_id = g.id
		)
		delete from refunds r using gone g where r.tenant_id = g.tenant_id and r.livemode = g.livemode and r.id = g.id`)
)

func sweep(sql string) Sweep {
	return func(ctx context.Context, tx pg.Tx, before time.Time, limit int) (int64, error) {
		tag, err := tx.Exec(ctx, sql, before, limit)
		if err != nil {
			return 0, fmt.Errorf("sweep: %w", err)
		}
		return tag.RowsAffected(), nil
	}
}
