package app

import (
	"context"
	"fmt"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// TenantErasure prepares the erasure of a tenant, so that no payer's money is lost.
type TenantErasure struct {
	Worker *pg.DB
	Now    func() time.Time
}

// Prepare lets Canceler cancel the open intents of a tenant in live mode, so that nobody can pay them any more. It returns what the
// gateway has not completed, as a sentence, or "".
func (a *TenantErasure) Prepare(ctx context.Context, tenant ids.Tenant) (wait string, err error) {
	var f domain.InFlight
	err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if err := store.CancelAll(ctx, tx, tenant, a.Now()); err != nil {
			return err
		}
		f, err = store.MoneyInFlight(ctx, tx, tenant)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("prepare the erasure of %s: %w", tenant, err)
	}
	return f.Wait(), nil
}
