package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/services/identity/internal/domain"
)

// AppendAudit chains a record to the tenant's log. The head is locked until the transaction ends, so no two
// records get the same number. Only a tenant has a head.
func AppendAudit(ctx context.Context, tx pg.Tx, r domain.Record) error {
	rows, err := tx.Query(ctx, `select tenant_id, seq, hash from audit_heads where tenant_id = $1 for update`, r.TenantID)
	if err != nil {
		return err
	}
	head, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[domain.Head])
	if err != nil {
		return notFound(err, domain.ErrTenantNotFound)
	}
	r, head, err = head.Append(r)
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue(`insert into audit_log (`+auditColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		r.TenantID, r.Livemode, r.Seq, r.At, r.Actor, r.Action, r.Object, r.Before, r.After, r.Source, r.PrevHash, r.Hash)
	b.Queue(`update audit_heads set seq = $2, hash = $3 where tenant_id = $1`, head.TenantID, head.Seq, head.Hash)
	return tx.SendBatch(ctx, b).Close()
}

const auditColumns = `tenant_id, livemode, seq, at, actor, action, object, before, after, source, prev_hash, hash`

// Audit returns up to limit records of the tenant behind number after, in order; q has the worker role.
func Audit(ctx context.Context, q pg.Q, tenant ids.Tenant, after int64, limit int) ([]domain.Record, error) {
	rows, err := q.Query(ctx, `select `+auditColumns+` from audit_log
		where tenant_id = $1 and seq > $2 order by seq limit $3`, tenant, after, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[domain.Record])
}

// AuditEnd is the noted end of a tenant's chain, and the number of a record that lies outside of it.
type AuditEnd struct {
	domain.Head
	Stray *int64 // nil: there is none
}

// AuditHead returns the noted end of the tenant's chain, or ErrHeadMissing; q has the worker role. Head and records
// are of one moment.
func AuditHead(ctx context.Context, q pg.Q, tenant ids.Tenant) (AuditEnd, error) {
	rows, err := q.Query(ctx, `select tenant_id, seq, hash,
			(select min(l.seq) from audit_log l where l.tenant_id = h.tenant_id and (l.seq > h.seq or l.seq < 1)) as stray
		from audit_heads h where tenant_id = $1`, tenant)
	if err != nil {
		return AuditEnd{}, err
	}
	end, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[AuditEnd])
	return end, notFound(err, domain.ErrHeadMissing)
}
