package store_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/migrations"
)

// TestWhoIsProvenAtTheUpgrade checks that, of the operators that exist at the upgrade, exactly those count as verified whose
// password was set by a link of the command line and those who belong to several tenants.
func TestWhoIsProvenAtTheUpgrade(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn := owner(t, db)
	file, err := fs.ReadFile(migrations.FS, "00012_proven_addresses.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(file), "with named as (")
	update, _, found := strings.Cut("with named as ("+rest, ";")
	if !found {
		t.Fatal("the statement is not there")
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	tenants := []ids.Tenant{ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()}
	for _, id := range tenants {
		exec(`insert into tenants (tenant_id, slug, name, timezone, currency, created_at, updated_at) values ($1, $1::uuid::text, 'x', 'UTC', 'EUR', now(), now())`, id)
	}
	seq := 0
	for name, o := range map[string]struct {
		tenants int
		records [][2]string // action and source
		open    bool        // it has no password yet
	}{
		"by command":       {1, [][2]string{{"operator.invite", "cli:root@host"}}, false},
		"not accepted":     {1, [][2]string{{"operator.invite", "cli:root@host"}}, true},
		"by console":       {1, [][2]string{{"operator.invite", "console:req_x"}}, false},
		"by both":          {1, [][2]string{{"operator.invite", "console:req_x"}, {"operator.invite", "cli:root@host"}}, false},
		"reset":            {1, [][2]string{{"operator.invite", "console:req_x"}, {"operator.password", "page"}}, false},
		"two tenants":      {2, [][2]string{{"operator.invite", "console:req_x"}}, false},
		"without a record": {1, nil, false},
	} {
		id := domain.NewOperatorID()
		hash := "x"
		exec(`insert into operators (id, email, email_lower, name, password_hash, created_at, updated_at) values ($1, $2, $2, '', $3, now(), now())`, id, name, &hash)
		if o.open {
			exec(`update operators set password_hash = null where id = $1`, id)
		}
		for _, tenant := range tenants[:o.tenants] {
			exec(`insert into memberships (tenant_id, operator_id, role, created_at) values ($1, $2, 'staff', now())`, tenant, id)
		}
		for _, r := range o.records {
			seq++
			exec(`insert into audit_log (tenant_id, livemode, seq, at, actor, action, object, source, prev_hash, hash)
				values ($1, true, $2, now(), 'x', $3, $4, $5, '', '')`, tenants[0], seq, r[0], id.String(), r[1])
		}
	}
	exec(update)
	rows, err := conn.Query(t.Context(), `select email from operators where proven_at is not null order by email`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if want := []string{"by command", "reset", "two tenants"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v: %v, want %v", got, err, want)
	}
}
