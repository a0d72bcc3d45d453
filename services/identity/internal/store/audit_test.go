package store_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/migrations"
)

// TestAuditPlan checks that the records of one object are found by an index, regardless of the length of the log.
func TestAuditPlan(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	sql, args := store.AuditQuery(store.AuditFilter{Tenant: ids.New[ids.TenantPrefix](), Object: "bk_x", Before: 9}, 100)
	var plan []string
	err := db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) (err error) {
		plan, err = pg.Many(ctx, tx, pgx.RowTo[string], "explain "+sql, args)
		return err
	})
	if text := strings.Join(plan, "\n"); err != nil || !strings.Contains(text, "Index Scan Backward using audit_log_object") || strings.Contains(text, "Sort") {
		t.Errorf("%v\n%s", err, text)
	}
}
