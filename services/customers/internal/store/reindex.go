package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// Unsearched is a row whose words are not those of its version: the version before this one of the service has written it.
type Unsearched struct {
	TenantID ids.Tenant
	Livemode bool
	ID       [16]byte
}

// UnsearchedCustomers returns up to limit customers of all tenants and modes whose words are to be written, by id, behind after; tx
// has the worker role.
func UnsearchedCustomers(ctx context.Context, tx pg.Tx, after [16]byte, limit int) ([]Unsearched, error) {
	return unsearched(ctx, tx, "customers", after, limit)
}

// UnsearchedLeads is UnsearchedCustomers for leads.
func UnsearchedLeads(ctx context.Context, tx pg.Tx, after [16]byte, limit int) ([]Unsearched, error) {
	return unsearched(ctx, tx, "leads", after, limit)
}

func unsearched(ctx context.Context, tx pg.Tx, table string, after [16]byte, limit int) ([]Unsearched, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[Unsearched], `
		select t.tenant_id, t.livemode, t.id from `+table+` t
		where t.search_version <> t.version and t.id > $1::uuid order by t.id limit $2`, after, limit)
}

// ReindexCustomers writes the words of the caller's customers among rows. Those that another transaction has locked, and those
// whose words have been written since, it leaves. It changes nothing that a reader sees.
func ReindexCustomers(ctx context.Context, tx pg.Tx, rows [][16]byte) error {
	list, err := pg.Many(ctx, tx, pgx.RowToStructByName[domain.Customer], `
		select `+customerColumns+` from customers c
		where c.tenant_id = @tenant and c.livemode = @live and c.id = any(@ids) and c.search_version <> c.version
		order by c.id for update skip locked`, pg.Args{"ids": rows})
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	for _, c := range list {
		customerWords.queueReplace(b, "customers", c.ID, c.Words())
	}
	return reindexed(ctx, tx, b)
}

// ReindexLeads is ReindexCustomers for leads.
func ReindexLeads(ctx context.Context, tx pg.Tx, rows [][16]byte) error {
	list, err := pg.Many(ctx, tx, scanLead, `
		select `+leadColumns+` from leads l
		where l.tenant_id = @tenant and l.livemode = @live and l.id = any(@ids) and l.search_version <> l.version
		order by l.id for update of l skip locked`, pg.Args{"ids": rows})
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	for _, l := range list {
		leadWords.queueReplace(b, "leads", l.ID, l.Words())
	}
	return reindexed(ctx, tx, b)
}

func reindexed(ctx context.Context, tx pg.Tx, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("write words: %w", err)
	}
	return nil
}
