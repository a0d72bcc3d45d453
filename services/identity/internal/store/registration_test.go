package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/migrations"
)

// TestPlansOfRegisteredApps checks that apps that registered themselves are counted, replaced and swept by index, if there are as many as
// there can be. The functions of the database run as the owner.
func TestPlansOfRegisteredApps(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn := owner(t, db)
	for _, sql := range []string{
		`insert into oauth_apps (id, name, redirect_uris, scopes, published, reuse_leeway_seconds, network, created_at, updated_at)
			select gen_random_uuid(), 'n', '{}', '{}', true, 0, 'n' || n % 1000, now() - n * interval '350 milliseconds', now() from generate_series(1, 10000) n`,
		`analyze oauth_apps`, `set enable_seqscan = off`, // as services connect
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		sql     string
		args    []any
		indexes []string
	}{
		"count":   {`select count(*) from oauth_apps where network = $1`, []any{"n7"}, []string{"oauth_apps_network"}},
		"replace": {`select id from oauth_apps where tenant_id is null and network is not null order by created_at desc, id desc offset $1`, []any{9999}, []string{"oauth_apps_registered"}},
		"sweep":   {store.SweepRegistered, []any{time.Now().Add(-domain.UnusedLifetime), 500}, []string{"oauth_apps_registered", "oauth_grants_of_app"}},
	} {
		rows, err := conn.Query(t.Context(), "explain "+test.sql, test.args...)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan := strings.Join(lines, "\n")
		for _, index := range test.indexes {
			if err != nil || !strings.Contains(plan, index) || strings.Contains(plan, "Seq Scan") || name == "replace" && strings.Contains(plan, "Sort") {
				t.Errorf("%s: %v, want %s in\n%s", name, err, index, plan)
			}
		}
	}
}
