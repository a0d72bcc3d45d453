package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

const auditColumns = `tenant_id, livemode, seq, at, actor, action, object, before, after, source, prev_hash, hash`

// AppendAudit chains a record to the log of the caller's tenant, as one of the caller's mode. The head is locked until
// the transaction ends, so no two records get the same number. A tenant without a head does not exist.
func AppendAudit(ctx context.Context, tx pg.Tx, r domain.Record) error {
	head, err := pg.One(ctx, tx, pgx.RowToStructByName[domain.Head], domain.ErrTenantNotFound,
		`select tenant_id, seq, hash from audit_heads where tenant_id = @tenant for update`, pg.Args{})
	if err != nil {
		return err
	}
	r.Livemode = caller.FromContext(ctx).Live() // the hash covers what the statement writes
	r, head, err = head.Append(r)
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue(`insert into audit_log (`+auditColumns+`)
		values (@tenant, @live, @seq, @at, @actor, @action, @object, @before, @after, @source, @prev_hash, @hash)`,
		pg.Args{
			"seq": r.Seq, "at": r.At, "actor": r.Actor, "action": r.Action, "object": r.Object, "before": r.Before,
			"after": r.After, "source": r.Source, "prev_hash": r.PrevHash, "hash": r.Hash,
		})
	b.Queue(`update audit_heads set seq = @seq, hash = @hash where tenant_id = @tenant`,
		pg.Args{"seq": head.Seq, "hash": head.Hash})
	return send(ctx, tx, b, "append to the audit log")
}

// Audit returns up to limit records of the tenant behind number after, in order; q has the worker role.
func Audit(ctx context.Context, q pg.Q, tenant ids.Tenant, after int64, limit int) ([]domain.Record, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Record], `select `+auditColumns+` from audit_log
		where tenant_id = $1 and seq > $2 order by seq limit $3`, tenant, after, limit)
}

// AuditEnd is the noted end of a tenant's chain, and the number of a record that lies outside of it.
type AuditEnd struct {
	domain.Head
	Stray *int64 // nil: there is none
}

// AuditHead returns the noted end of the tenant's chain, or ErrHeadMissing; q has the worker role. Head and records
// are of one moment.
func AuditHead(ctx context.Context, q pg.Q, tenant ids.Tenant) (AuditEnd, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[AuditEnd], domain.ErrHeadMissing, `select tenant_id, seq, hash,
			(select min(l.seq) from audit_log l where l.tenant_id = h.tenant_id and (l.seq > h.seq or l.seq < 1)) as stray
		from audit_heads h where tenant_id = $1`, tenant)
}
