package store

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

const auditColumns = `tenant_id, livemode, seq, at, actor, action, object, before, after, source, prev_hash, hash`

// AppendAudit chains a record to the log of the caller's tenant, in the caller's mode. The head is locked until the transaction
// ends, so no two records get the same number. A tenant without a head does not exist.
func AppendAudit(ctx context.Context, tx pg.Tx, r domain.Record) error {
	head, err := pg.One(ctx, tx, pgx.RowToStructByName[domain.Head], domain.ErrTenantNotFound,
		`select tenant_id, seq, hash from audit_heads where tenant_id = @tenant for update`, pg.Args{})
	if err != nil {
		return err
	}
	r.Livemode = caller.FromContext(ctx).Live() // the hash must cover the value that the statement writes
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
	return pg.Send(ctx, tx, b, "append to the audit log")
}

// AuditHeadsForUpdate locks the heads of the tenants until the transaction ends, in the order of the tenants' ids, so that
// transactions that lock several heads do not deadlock. It returns domain.ErrTenantNotFound if one of them has no head. tx has the
// worker role.
func AuditHeadsForUpdate(ctx context.Context, tx pg.Tx, tenants []ids.Tenant) (map[ids.Tenant]domain.Head, error) {
	requested := map[ids.Tenant]bool{}
	for _, t := range tenants {
		requested[t] = true
	}
	list, err := pg.Many(ctx, tx, pgx.RowToStructByName[domain.Head],
		`select tenant_id, seq, hash from audit_heads where tenant_id = any($1) order by tenant_id for update`,
		pg.Column(slices.Collect(maps.Keys(requested)), ids.Tenant.UUID))
	if err != nil {
		return nil, err
	}
	if len(list) < len(requested) {
		return nil, domain.ErrTenantNotFound
	}
	heads := make(map[ids.Tenant]domain.Head, len(list))
	for _, h := range list {
		heads[h.TenantID] = h
	}
	return heads, nil
}

// AppendAudits writes records that are chained to heads that the transaction locked, in their order. It runs in the round trip of
// the commit. tx has the worker role.
func AppendAudits(tx pg.Tx, records []domain.Record) {
	tenants := pg.Column(records, func(r domain.Record) [16]byte { return r.TenantID.UUID() })
	seqs := pg.Column(records, func(r domain.Record) int64 { return r.Seq })
	hashes := pg.Column(records, func(r domain.Record) []byte { return r.Hash })
	tx.QueueAtCommit(`
		insert into audit_log (`+auditColumns+`)
		select tenant_id, livemode, seq, at, actor, action, object, before::jsonb, after::jsonb, source, prev_hash, hash
		from unnest($1::uuid[], $2::boolean[], $3::bigint[], $4::timestamptz[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
			$10::text[], $11::bytea[], $12::bytea[]) r (`+auditColumns+`)`,
		tenants,
		pg.Column(records, func(r domain.Record) bool { return r.Livemode }),
		seqs,
		pg.Column(records, func(r domain.Record) time.Time { return r.At }),
		pg.Column(records, func(r domain.Record) string { return r.Actor }),
		pg.Column(records, func(r domain.Record) string { return r.Action }),
		pg.Column(records, func(r domain.Record) string { return r.Object }),
		pg.Column(records, func(r domain.Record) *string { return optional(r.Before) }),
		pg.Column(records, func(r domain.Record) *string { return optional(r.After) }),
		pg.Column(records, func(r domain.Record) string { return r.Source }),
		pg.Column(records, func(r domain.Record) []byte { return r.PrevHash }),
		hashes)
	tx.QueueAtCommit(`
		update audit_heads h set seq = r.seq, hash = r.hash
		from (select distinct on (tenant_id) * from unnest($1::uuid[], $2::bigint[], $3::bytea[]) l (tenant_id, seq, hash)
			order by tenant_id, seq desc) r
		where h.tenant_id = r.tenant_id`, tenants, seqs, hashes)
}

func optional(raw json.RawMessage) *string {
	if len(raw) == 0 {
		return nil
	}
	return new(string(raw))
}

// Audit returns up to limit records of the tenant with numbers above after, in order. q has the worker role.
func Audit(ctx context.Context, q pg.Q, tenant ids.Tenant, after int64, limit int) ([]domain.Record, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Record], `select `+auditColumns+` from audit_log
		where tenant_id = $1 and seq > $2 order by seq limit $3`, tenant, after, limit)
}

// AuditFilter selects records of a tenant. Zero values select all.
type AuditFilter struct {
	Tenant   ids.Tenant
	Actor    string
	Action   string
	Object   string
	Livemode *bool     // nil: both modes
	From, To time.Time // time of the action: from From until before To
	Before   int64     // a record's number; 0: from the newest
}

// AuditPage returns up to limit records, newest first. q has the worker role.
func AuditPage(ctx context.Context, q pg.Q, f AuditFilter, limit int) ([]domain.Record, error) {
	sql, args := auditQuery(f, limit)
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Record], sql, args)
}

func auditQuery(f AuditFilter, limit int) (string, pg.Args) {
	sql, args := `select `+auditColumns+` from audit_log where tenant_id = @of`, pg.Args{"of": f.Tenant, "limit": limit}
	add := func(given bool, name string, value any, condition string) {
		if given {
			sql, args[name] = sql+" and "+condition, value
		}
	}
	add(f.Actor != "", "actor", f.Actor, "actor = @actor")
	add(f.Action != "", "action", f.Action, "action = @action")
	add(f.Object != "", "object", f.Object, "object = @object")
	add(f.Livemode != nil, "livemode", f.Livemode, "livemode = @livemode")
	add(!f.From.IsZero(), "from", f.From, "at >= @from")
	add(!f.To.IsZero(), "to", f.To, "at < @to")
	add(f.Before != 0, "before", f.Before, "seq < @before")
	return sql + ` order by seq desc limit @limit`, args
}

// AuditEnd is the stored end of a tenant's chain, and the number of a record outside of it.
type AuditEnd struct {
	domain.Head
	Stray *int64 // nil: there is none
}

// AuditHead returns the stored end of the tenant's chain, or ErrHeadMissing. q has the worker role. The head and the records are
// read in the same snapshot.
func AuditHead(ctx context.Context, q pg.Q, tenant ids.Tenant) (AuditEnd, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[AuditEnd], domain.ErrHeadMissing, `select tenant_id, seq, hash,
			(select min(l.seq) from audit_log l where l.tenant_id = h.tenant_id and (l.seq > h.seq or l.seq < 1)) as stray
		from audit_heads h where tenant_id = $1`, tenant)
}
