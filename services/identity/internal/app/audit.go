package app

import (
	"bytes"
	"context"
	"fmt"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

const (
	auditBatch = 1000
	consumer   = "identity" // this service's name in the inbox
)

// Witness appends what another service tells to the audit log, once however often its event comes. Of r the
// tenant and mode are those of the context: ErrTenantNotFound when there is no such tenant.
func (a *App) Witness(ctx context.Context, event ids.Event, r domain.Record) error {
	who := caller.Must(ctx)
	r.TenantID, r.Livemode = who.Tenant, who.Live()
	err := a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		first, err := inbox.Once(ctx, tx, consumer, event)
		if err != nil || !first {
			return err
		}
		return store.AppendAudit(ctx, tx, r)
	})
	if err != nil {
		return fmt.Errorf("witness %s: %w", r.Action, err)
	}
	return nil
}

// Verdict is the outcome of checking one tenant's audit chain.
type Verdict struct {
	Tenant  string `json:"tenant"` // slug
	Records int64  `json:"records"`
	Broken  string `json:"broken"` // where the chain breaks first; "" when it holds
}

// VerifyAudit walks the chain of each tenant from its first record to its noted head.
func (a *App) VerifyAudit(ctx context.Context, tenants []domain.Tenant) ([]Verdict, error) {
	verdicts := make([]Verdict, 0, len(tenants))
	for _, t := range tenants {
		head, broken, err := a.walk(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("tenant %s: %w", t.Slug, err)
		}
		verdicts = append(verdicts, Verdict{Tenant: t.Slug, Records: head.Seq, Broken: broken})
	}
	return verdicts, nil
}

// walk follows one chain. The head is read before the records, so that a record added meanwhile is no fault.
func (a *App) walk(ctx context.Context, t domain.Tenant) (at domain.Head, broken string, err error) {
	var end domain.Head
	err = a.Worker.Worker(ctx, func(ctx context.Context, tx pg.Tx) error {
		end, err = store.AuditHead(ctx, tx, t.ID)
		return err
	})
	at = domain.NewHead(t.ID)
	for err == nil && at.Seq < end.Seq {
		var records []domain.Record
		err = a.Worker.Worker(ctx, func(ctx context.Context, tx pg.Tx) error {
			records, err = store.Audit(ctx, tx, t.ID, at.Seq, auditBatch)
			return err
		})
		if err == nil && len(records) == 0 {
			return at, fmt.Sprintf("record %d is missing", at.Seq+1), nil
		}
		for _, r := range records {
			next, fault := at.Follow(r)
			if fault != nil {
				return at, fault.Error(), nil
			}
			if at = next; at.Seq == end.Seq {
				break
			}
		}
	}
	if err == nil && !bytes.Equal(at.Hash, end.Hash) {
		return at, fmt.Sprintf("record %d is not the one that the head names", at.Seq), nil
	}
	return at, "", err
}
