package store

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// Erased is an intent whose personal data was cleared.
type Erased struct {
	ID        domain.IntentID
	GatewayID domain.GatewayID // "" when the gateway does not know it
	Version   int64
}

// Compare orders intents by their ids.
func (e Erased) Compare(other Erased) int {
	x, y := e.ID.UUID(), other.ID.UUID()
	return bytes.Compare(x[:], y[:])
}

// EraseIntents clears the personal data of the next intents of a customer after one, up to limit of them in the order of their ids.
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

// CreatingIntents reports whether an intent of the customer is still being made at the gateway.
func CreatingIntents(ctx context.Context, tx pg.Tx, customer domain.CustomerID) (bool, error) {
	return pg.One(ctx, tx, pgx.RowTo[bool], pgx.ErrNoRows, `
		select exists (select from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and p.customer_id = @customer
			and p.status = 'creating')`, pg.Args{"customer": customer})
}
