package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

const viewColumns = `id, list, name, query, created_at`

// Views returns the saved views of an operator at the caller's tenant, by list and name: of one list or, for "", of all.
func Views(ctx context.Context, q pg.Q, operator domain.OperatorID, list string) ([]domain.SavedView, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.SavedView], `select `+viewColumns+` from saved_views
		where tenant_id = @tenant and operator_id = @operator and (@list = '' or list = @list) order by list, name`,
		pg.Args{"operator": operator, "list": list})
}

// CountViews counts the saved views of an operator at the caller's tenant, except the one with the list and name of v: in the list,
// and in total. The tenant's row must be locked.
func CountViews(ctx context.Context, tx pg.Tx, operator domain.OperatorID, v domain.SavedView) (inList, inAll int, err error) {
	type row struct{ InList, InAll int }
	r, err := pg.One(ctx, tx, pgx.RowToStructByName[row], pgx.ErrNoRows, `select count(*) filter (where list = @list) as in_list, count(*) as in_all
		from saved_views where tenant_id = @tenant and operator_id = @operator and not (list = @list and name = @name)`,
		pg.Args{"operator": operator, "list": v.List, "name": v.Name})
	return r.InList, r.InAll, err
}

// PutView adds a saved view of an operator at the caller's tenant, or sets the query of the existing view of its list and name.
func PutView(ctx context.Context, tx pg.Tx, operator domain.OperatorID, v domain.SavedView) (domain.SavedView, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.SavedView], pgx.ErrNoRows, `insert into saved_views (tenant_id, operator_id, id, list, name, query, created_at)
		values (@tenant, @operator, @id, @list, @name, @query, @at)
		on conflict (tenant_id, operator_id, list, name) do update set query = excluded.query returning `+viewColumns,
		pg.Args{"operator": operator, "id": v.ID, "list": v.List, "name": v.Name, "query": v.Query, "at": v.CreatedAt})
}

// DeleteView deletes a saved view of an operator at the caller's tenant, or returns domain.ErrViewNotFound.
func DeleteView(ctx context.Context, tx pg.Tx, operator domain.OperatorID, id domain.ViewID) error {
	tag, err := tx.Exec(ctx, `delete from saved_views where tenant_id = @tenant and operator_id = @operator and id = @id`, pg.Args{"operator": operator, "id": id})
	if err != nil {
		return fmt.Errorf("delete a view: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return domain.ErrViewNotFound
	}
	return nil
}

// DeleteViews deletes all saved views of an operator at the caller's tenant.
func DeleteViews(ctx context.Context, tx pg.Tx, operator domain.OperatorID) error {
	return pg.Exec(ctx, tx, "delete views", `delete from saved_views where tenant_id = @tenant and operator_id = @operator`, pg.Args{"operator": operator})
}
