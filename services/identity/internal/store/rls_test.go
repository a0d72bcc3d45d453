package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/identity/migrations"
)

// fixture specifies how to add a row of a tenant ($1) and mode ($2), and what the app role may do with the table.
type fixture struct {
	insert string
	verbs  string // first letters of select, insert, update and delete
	modes  bool   // rows belong to one mode
}

var fixtures = map[string]fixture{
	"tenants": {`insert into tenants (tenant_id, slug, name, timezone, currency, external_id, metadata, logo, logo_hash, created_at, updated_at)
		select $1::uuid, $1::uuid::text, 'n', 'UTC', 'EUR', $1::uuid::text, '{"k":"v"}', '\x89', 'h', now(), now() where $2::boolean is not null on conflict do nothing`, "siu", false},
	"gateway_accounts": {`insert into gateway_accounts (tenant_id, livemode, id, provider, connected, version)
		values ($1, $2, gen_random_uuid()::text, 'stripe', true, 1)`, "siud", true},
	"audit_heads": {`insert into audit_heads (tenant_id, seq, hash) select $1::uuid, 0, '\x00' where $2::boolean is not null on conflict do nothing`, "siu", false},
	"api_keys": {`insert into api_keys (tenant_id, livemode, id, name, hash, scopes, created_at)
		values ($1, $2, gen_random_uuid(), '', sha256(gen_random_uuid()::text::bytea), '{}', now())`, "siu", true},
	"key_signals": {`insert into key_signals (tenant_id, livemode, key_id, value) values ($1, $2, gen_random_uuid(), '1')`, "siu", true},
	"audit_log": {`insert into audit_log (tenant_id, livemode, seq, at, actor, action, object, source, prev_hash, hash)
		values ($1, $2, (random() * 1e12)::bigint, now(), 'a', 'a', 'o', 's', '\x00', '\x00')`, "si", true},
	"idempotency_keys": {`insert into idempotency_keys (tenant_id, livemode, credential_id, key, fingerprint, expires_at)
		values ($1, $2, 'c', gen_random_uuid()::text, '\x00', now())`, "siud", true},
	"outbox": {`insert into outbox (tenant_id, livemode, id, topic, aggregate_id, hash, message)
		values ($1, $2, gen_random_uuid(), 't', 'a', 0, '\x00')`, "siud", true},
	"memberships": {`with o as (insert into operators (id, email, email_lower, name, created_at, updated_at)
			select gen_random_uuid(), e, e, '', now(), now() from (select gen_random_uuid()::text as e) x where $2::boolean is not null returning id)
		insert into memberships (tenant_id, operator_id, role, created_at) select $1, id, 'owner', now() from o
		where not exists (select from memberships where tenant_id = $1)`, "siu", false},
	"saved_views": {`with o as (insert into operators (id, email, email_lower, name, created_at, updated_at)
			select gen_random_uuid(), e, e, '', now(), now() from (select gen_random_uuid()::text as e) x where $2::boolean is not null returning id)
		insert into saved_views (tenant_id, operator_id, id, list, name, query, created_at) select $1, id, id, 'bookings', 'n', '', now() from o
		where not exists (select from saved_views where tenant_id = $1)`, "siud", false},
	"oauth_apps": {`insert into oauth_apps (tenant_id, id, name, redirect_uris, scopes, published, reuse_leeway_seconds, created_at, updated_at)
		select $1, gen_random_uuid(), '', '{}', '{}', true, 0, now(), now()
		where $2::boolean is not null and not exists (select from oauth_apps where tenant_id = $1)`, "siu", false},
	"oauth_grants": {`insert into oauth_grants (tenant_id, livemode, id, app_id, operator_id, scopes, redirect_uri, code_hash, code_challenge, code_expires_at, ends_at, created_at)
		select $1, $2, gen_random_uuid(), '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000002', '{}', '',
			sha256(gen_random_uuid()::text::bytea), '', now(), now(), now()`, "siu", true},
	"oauth_access_tokens": {`insert into oauth_access_tokens (tenant_id, livemode, grant_id, slot, hash, expires_at)
		values ($1, $2, gen_random_uuid(), 0, sha256(gen_random_uuid()::text::bytea), now())`, "siu", true},
	"grant_signals": {`insert into grant_signals (tenant_id, livemode, grant_id, value) values ($1, $2, gen_random_uuid(), '1')`, "siu", true},
	"usage_days": {`insert into usage_days (tenant_id, livemode, day, requests_read, requests_write, requests_export, requests_stream,
			requests_rejected, bookings, events, deliveries, stored_rows, stored_bytes, payments, measured_at)
		values ($1, $2, date '2026-01-01' + (random() * 1e6)::integer, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '[]', now())`, "si", true},
	"inbox": {`insert into inbox (tenant_id, livemode, consumer, event_id, expires_at) values ($1, $2, 'c', gen_random_uuid(), now())`, "siud", true},
}

// order lists tables that others reference first.
var order = []string{
	"tenants", "audit_heads", "api_keys", "key_signals", "audit_log", "idempotency_keys", "outbox", "inbox", "gateway_accounts",
	"memberships", "saved_views", "oauth_apps", "oauth_grants", "oauth_access_tokens", "grant_signals", "usage_days",
}

// granting adds the app and the operator that the rows of oauth_grants reference, and the tenant ($1) that owns the app.
const granting = `with t as (insert into tenants (tenant_id, slug, name, timezone, currency, created_at, updated_at)
		values ($1::uuid, $1::uuid::text, 'n', 'UTC', 'EUR', now(), now()) returning tenant_id),
	o as (insert into operators (id, email, email_lower, name, created_at, updated_at)
		values ('00000000-0000-7000-8000-000000000002', 'a', 'a', '', now(), now()))
	insert into oauth_apps (tenant_id, id, name, redirect_uris, scopes, published, reuse_leeway_seconds, created_at, updated_at)
	select tenant_id, '00000000-0000-7000-8000-000000000001', '', '{}', '{}', true, 0, now(), now() from t`

// people are the tables of operators, who span tenants. No policy applies to them.
var people = []string{"operators", "operator_links", "recovery_codes", "operator_sessions", "known_browsers", "operator_endings", "form_drafts", "sign_in_attempts"}

// tenantless are the tables without rows of tenants or people.
var tenantless = []string{"installation", "outbox_partitions", "platform_keys", "schema_common", "schema_service", "tenant_erasures", "usage_collections"}

func owner(t *testing.T, db *pgtest.DB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// TestEveryTableIsProtected checks that every table is under forced row-level security by tenant and mode, or is in the list of
// exempt tables.
func TestEveryTableIsProtected(t *testing.T) {
	t.Parallel()
	conn := owner(t, pgtest.New(t, migrations.FS))
	type table struct {
		Name             string
		Forced, TenantIn bool
		ModeIn           bool
	}
	rows, err := conn.Query(t.Context(), `
		select c.relname as name, c.relrowsecurity and c.relforcerowsecurity as forced,
			coalesce(bool_or(p.qual like '%app.tenant_id%'), false) as tenant_in,
			coalesce(bool_or(p.qual like '%app.livemode%'), false) as mode_in
		from pg_class c left join pg_policies p on p.tablename = c.relname and p.policyname = 'tenant'
		where c.relkind in ('r', 'p', 'm') and c.relnamespace = 'public'::regnamespace
		group by c.relname, c.relrowsecurity, c.relforcerowsecurity`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByName[table])
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range tables {
		_, exempt := migrations.Exempt[one.Name]
		whole := one.Forced && one.TenantIn && one.ModeIn
		if whole == exempt {
			t.Errorf("table %s: protected %v, in the list of exempt ones %v; want one of the two", one.Name, whole, exempt)
		}
		if _, known := fixtures[one.Name]; !known && !slices.Contains(people, one.Name) && !slices.Contains(tenantless, one.Name) {
			t.Errorf("table %s has no fixture: the matrix does not cover it", one.Name)
		}
	}
	if len(tables) != len(fixtures)+len(people)+len(tenantless) {
		t.Errorf("%d tables, %d fixtures, %d of people", len(tables), len(fixtures), len(people))
	}
}

type scope struct {
	tenant ids.Tenant
	mode   caller.Mode
}

// TestRowLevelSecurityMatrix checks each table × verb as the app role, for 2 tenants × 2 modes, and without any scope.
func TestRowLevelSecurityMatrix(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn := owner(t, db)
	a, b := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	if _, err := conn.Exec(t.Context(), granting, a); err != nil {
		t.Fatal(err)
	}
	scopes := []scope{{a, caller.Live}, {a, caller.Test}, {b, caller.Live}, {b, caller.Test}}
	for _, name := range order {
		for _, s := range scopes {
			if _, err := conn.Exec(t.Context(), fixtures[name].insert, s.tenant, s.mode == caller.Live); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if len(order) != len(fixtures) {
		t.Fatal("order and fixtures differ")
	}
	for _, name := range order {
		f := fixtures[name]
		for _, s := range scopes {
			m := &matrix{t: t, db: db.App, name: name, f: f, own: s}
			m.reads()
			m.writes()
			for _, other := range append(scopes, scope{ids.New[ids.TenantPrefix](), s.mode}) {
				m.inserts(other)
			}
		}
		none := &matrix{t: t, db: db.App, name: name, f: f, own: scope{}}
		if n, err := none.run(`select count(*) from ` + name); err != nil || n != 0 {
			t.Errorf("%s without a scope: %d rows: %v", name, n, err)
		}
	}
}

type matrix struct {
	t    *testing.T
	db   *pg.DB
	name string
	f    fixture
	own  scope
}

var errUndo = errors.New("undo")

// run returns the number from a select, or the number of rows that another statement changed, and rolls it back.
func (m *matrix) run(sql string, args ...any) (n int64, err error) {
	ctx := pgtest.CtxOf(m.t, m.own.tenant, m.own.mode)
	fn := func(ctx context.Context, tx pg.Tx) error {
		if strings.HasPrefix(sql, "select") {
			rows, err := tx.Query(ctx, sql, args...)
			if err != nil {
				return err
			}
			if n, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64]); err != nil {
				return err
			}
			return errUndo
		}
		tag, err := tx.Exec(ctx, sql, args...)
		if err != nil {
			return err
		}
		n = tag.RowsAffected()
		return errUndo
	}
	if m.own == (scope{}) {
		err = m.db.SystemTx(ctx, fn) // sets no scope
	} else {
		err = m.db.Tx(ctx, fn)
	}
	if errors.Is(err, errUndo) {
		err = nil
	}
	return n, err
}

func (m *matrix) errorf(verb string, n int64, err error) {
	m.t.Helper()
	m.t.Errorf("%s as %s %s: %s: %d rows: %v", m.name, m.own.tenant, m.own.mode, verb, n, err)
}

func (m *matrix) reads() {
	m.t.Helper()
	if n, err := m.run(`select count(*) from ` + m.name); err != nil || n != 1 {
		m.errorf("select", n, err)
	}
	foreign := fmt.Sprintf(`select count(*) from %s where tenant_id <> $1`, m.name)
	args := []any{m.own.tenant}
	if m.f.modes {
		foreign += ` or livemode <> $2`
		args = append(args, m.own.mode == caller.Live)
	}
	if n, err := m.run(foreign, args...); err != nil || n != 0 {
		m.errorf("select of others' rows", n, err)
	}
}

// writes tries to update and delete all rows. Exactly the own row must change, unless the role lacks the privilege.
func (m *matrix) writes() {
	m.t.Helper()
	for verb, sql := range map[string]string{
		"u": fmt.Sprintf(`update %s set tenant_id = tenant_id`, m.name),
		"d": fmt.Sprintf(`delete from %s`, m.name),
	} {
		n, err := m.run(sql)
		if strings.Contains(m.f.verbs, verb) {
			if err != nil || n != 1 {
				m.errorf(verb, n, err)
			}
		} else if pg.Code(err) != "42501" {
			m.errorf(verb+" must be denied", n, err)
		}
	}
	if !strings.Contains(m.f.verbs, "u") {
		return
	}
	moved := ids.New[ids.TenantPrefix]()
	if n, err := m.run(fmt.Sprintf(`update %s set tenant_id = $1`, m.name), moved); pg.Code(err) != "42501" {
		m.errorf("update into another tenant must be denied", n, err)
	}
	if m.f.modes {
		if n, err := m.run(fmt.Sprintf(`update %s set livemode = not livemode`, m.name)); pg.Code(err) != "42501" {
			m.errorf("update into the other mode must be denied", n, err)
		}
	}
}

func (m *matrix) inserts(into scope) {
	m.t.Helper()
	n, err := m.run(m.f.insert, into.tenant, into.mode == caller.Live)
	allowed := into.tenant == m.own.tenant && (!m.f.modes || into.mode == m.own.mode)
	if allowed && err != nil {
		m.errorf("insert", n, err)
	}
	if !allowed && pg.Code(err) != "42501" {
		m.errorf(fmt.Sprintf("insert for %s %s must be denied", into.tenant, into.mode), n, err)
	}
}

// TestFunctionsThatBypassRowLevelSecurity checks that these are the only functions that run as the owner, and only for the app role
// (oldest_write reads no table, and erase_tenant is for the worker). The worker must not see the hash, name or scopes of a key.
func TestFunctionsThatBypassRowLevelSecurity(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn := owner(t, db)
	rows, err := conn.Query(t.Context(), `select proname || case when has_function_privilege('public', oid, 'execute') then ' for all' else '' end
		from pg_proc where prosecdef and pronamespace = 'public'::regnamespace order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	functions, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if want := []string{
		"access_token_by_hash", "app_by_client_id", "app_publisher", "begin_memberships", "delete_registered_app", "end_grants", "ended_credentials", "erase_tenant", "grant_by_hash", "grant_home", "grants_of",
		"key_by_hash", "key_home", "key_replaced", "members_of_only", "memberships_ever", "memberships_of", "oldest_write", "origin_is_registered", "publisher_ended", "put_document_app", "register_app", "release_apps", "release_document", "signal_grants", "signal_published_apps", "signal_tenant_keys", "signed_in_by",
		"tenant_limits", "tenant_status", "use_registered_app",
	}; err != nil || !slices.Equal(functions, want) {
		t.Errorf("security definer functions %v: %v; want %v", functions, err, want)
	}
	for _, sql := range []string{
		`select hash from api_keys`, `select scopes from api_keys`, `update api_keys set revoked_at = null`, `select * from key_by_hash('\x00')`,
		`select * from access_token_by_hash('\x00')`, `select * from operators`, `update oauth_grants set revoked_at = null`,
	} {
		err := db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, sql)
			return err
		})
		if pg.Code(err) != "42501" {
			t.Errorf("worker: %s: %v, want denied", sql, err)
		}
	}
}

// TestLookupsArePlannedOnce checks the language of the functions that requests wait for. PostgreSQL plans a function in SQL that runs
// as its owner again on each call.
func TestLookupsArePlannedOnce(t *testing.T) {
	t.Parallel()
	conn := owner(t, pgtest.New(t, migrations.FS))
	for _, name := range []string{"key_by_hash", "access_token_by_hash", "grant_by_hash", "app_by_client_id", "tenant_limits", "tenant_status", "key_replaced"} {
		var language string
		err := conn.QueryRow(t.Context(), `select l.lanname from pg_proc p join pg_language l on l.oid = p.prolang where p.proname = $1`, name).Scan(&language)
		if err != nil || language != "plpgsql" {
			t.Errorf("%s: language %q, error %v", name, language, err)
		}
	}
}
