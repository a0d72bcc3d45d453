package migration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const first = `-- +goose Up
create table visits (id uuid primary key, code text, note text, constraint visits_code unique (code));
create table days (id uuid primary key) partition by range (id);
create table day (id uuid primary key);
create index visits_note on visits (note);
create function price() returns int language sql as 'select 1';
create type state as enum ('open');
`

// statements are the statements of a second file. Those of a file without a transaction begin with noTx.
var statements = []struct {
	sql      string
	rejected []Rule // in their order; none: accepted
	accepted Rule   // the rule that the statement comes close to breaking
}{
	{sql: `create index a on visits (code)`, rejected: []Rule{IndexLock}},
	{sql: `reindex table visits`, rejected: []Rule{IndexLock}},
	{sql: `drop index visits_note`, rejected: []Rule{IndexLock}},
	{sql: noTx + `drop index concurrently if exists a; create index concurrently a on visits (code)`, accepted: IndexLock},
	{sql: noTx + `reindex table concurrently visits`, accepted: IndexLock},
	{sql: noTx + `drop index concurrently visits_note`, accepted: IndexLock},
	{sql: `create table new (id uuid, at date); create index a on new (at)`, accepted: IndexLock},
	{sql: `create index concurrently a on visits (code)`, rejected: []Rule{IndexTransaction}},
	{sql: `drop index concurrently visits_note`, rejected: []Rule{IndexTransaction}},
	{sql: noTx + `drop index concurrently if exists a; create index concurrently a on visits (code)`, accepted: IndexTransaction},

	{sql: noTx + `create index concurrently a on visits (code)`, rejected: []Rule{NotRepeatable}},
	{sql: noTx + `create index concurrently if not exists a on visits (code)`, rejected: []Rule{NotRepeatable}},
	{sql: noTx + `drop index concurrently a; create index concurrently a on visits (code)`, rejected: []Rule{NotRepeatable}},
	{sql: noTx + `alter table visits add column a int`, rejected: []Rule{NotRepeatable}},
	{sql: noTx + `create table a (id int)`, rejected: []Rule{NotRepeatable}},
	{sql: noTx + `create function a() returns int language sql as 'select 1'`, rejected: []Rule{NotRepeatable}},
	{sql: noTx + `create trigger a before insert on visits execute function price()`, rejected: []Rule{NotRepeatable}},
	{sql: noTx + `create policy a on visits`, rejected: []Rule{NotRepeatable}},
	{sql: noTx + `alter table visits add constraint a check (code <> '') not valid`, rejected: []Rule{NotRepeatable}},
	{sql: noTx + `alter table visits add column if not exists a int`, accepted: NotRepeatable},
	{sql: noTx + `create table if not exists a (id int)`, accepted: NotRepeatable},
	{sql: noTx + `create or replace function a() returns int language sql as 'select 1'`, accepted: NotRepeatable},
	{sql: noTx + `create or replace trigger a before insert on visits execute function price()`, accepted: NotRepeatable},
	{sql: noTx + `drop policy if exists a on visits; create policy a on visits`, accepted: NotRepeatable},
	{sql: noTx + `alter table visits drop constraint if exists a, add constraint a check (code <> '') not valid`, accepted: NotRepeatable},
	{sql: `alter table visits add column a int`, accepted: NotRepeatable},

	{sql: `alter table visits add column a uuid default gen_random_uuid()`, rejected: []Rule{ColumnRewrite}},
	{sql: `alter table visits add column a bigserial`, rejected: []Rule{ColumnRewrite}},
	{sql: `alter table visits add column a int generated always as (1) stored`, rejected: []Rule{ColumnRewrite}},
	{sql: `alter table visits add column a int generated always as identity`, rejected: []Rule{ColumnRewrite}},
	{sql: `alter table visits add column a timestamptz not null default now(), add column b text default 'x'::text || 'y'`, accepted: ColumnRewrite},
	{sql: `alter table visits add column a uuid; alter table visits alter column a set default gen_random_uuid()`, accepted: ColumnRewrite},
	{sql: `alter table visits add column a int not null`, rejected: []Rule{ColumnNotNull}},
	{sql: `alter table visits add column a int not null default null`, rejected: []Rule{ColumnNotNull}},
	{sql: `alter table visits add column a int not null default 0`, accepted: ColumnNotNull},
	{sql: `alter table visits add column a int check (a > 0)`, rejected: []Rule{ColumnCheck}},
	{sql: `alter table visits add column a int; alter table visits add constraint b check (a > 0) not valid`, accepted: ColumnCheck},
	{sql: `alter table visits alter column code type varchar(10)`, rejected: []Rule{ColumnType}},
	{sql: `create table new (id uuid); alter table new alter column id type text`, accepted: ColumnType},
	{sql: `alter table visits alter column code set not null`, rejected: []Rule{SetNotNull}},
	{sql: `alter table visits add constraint a check (code is not null) not valid; alter table visits alter column code set not null`, rejected: []Rule{SetNotNull}},
	{sql: noTx + `alter table visits drop constraint if exists a, add constraint a check (code is not null) not valid;
		alter table visits validate constraint a; alter table visits alter column code set not null`, accepted: SetNotNull},
	{sql: `alter table visits alter column code drop not null`, accepted: SetNotNull},

	{sql: `alter table visits add constraint a check (code <> '')`, rejected: []Rule{ConstraintScan}},
	{sql: `alter table day add foreign key (id) references visits`, rejected: []Rule{ConstraintScan}},
	{sql: `alter table day add foreign key (id) references visits not valid`, accepted: ConstraintScan},
	{sql: `create table new (id uuid); alter table new add check (id is not null)`, accepted: ConstraintScan},
	{sql: `alter table visits add constraint a unique (note)`, rejected: []Rule{ConstraintIndex}},
	{sql: `alter table visits add column a int unique`, rejected: []Rule{ConstraintIndex}},
	{sql: `alter table visits add exclude (note with =)`, rejected: []Rule{ConstraintIndex}},
	{sql: `alter table visits add constraint a unique using index b`, accepted: ConstraintIndex},
	{sql: `alter table visits add constraint a check (code <> '') not valid; alter table visits validate constraint a`, rejected: []Rule{ValidateUnderLock}},
	{sql: `alter table visits validate constraint a`, accepted: ValidateUnderLock},

	{sql: `alter table visits drop column note`, rejected: []Rule{DropColumn}},
	{sql: `create table new (id uuid, a int); alter table new drop column a`, accepted: DropColumn},
	{sql: `alter table visits alter column note drop default`, rejected: []Rule{DropDefault}},
	{sql: `alter table visits alter column id drop identity`, rejected: []Rule{DropDefault}},
	{sql: `alter table visits alter column note set default ''`, accepted: DropDefault},
	{sql: `drop table visits`, rejected: []Rule{DropObject}},
	{sql: `drop function price()`, rejected: []Rule{DropObject}},
	{sql: `drop type state`, rejected: []Rule{DropObject}},
	{sql: `drop view shown`, rejected: []Rule{DropObject}},
	{sql: `create table new (id uuid); drop table new`, accepted: DropObject},
	{sql: `drop trigger a on visits`, accepted: DropObject},
	{sql: `alter table visits drop constraint visits_code`, rejected: []Rule{DropUnique}},
	{sql: `alter table visits drop constraint visits_pkey`, rejected: []Rule{DropUnique}},
	{sql: noTx + `drop index concurrently visits_code`, rejected: []Rule{DropUnique}},
	{sql: `alter table visits drop constraint visits_note_check`, accepted: DropUnique},
	{sql: `alter table visits rename column note to text`, rejected: []Rule{Rename}},
	{sql: `alter table visits rename to orders`, rejected: []Rule{Rename}},
	{sql: `alter function price() rename to cost`, rejected: []Rule{Rename}},
	{sql: `alter type state rename value 'open' to 'opened'`, rejected: []Rule{Rename}},
	{sql: `alter index visits_note rename to visits_text`, accepted: Rename},
	{sql: `create table new (id uuid); alter table new rename column id to key`, accepted: Rename},
	{sql: `revoke delete on visits from "${APP_ROLE}"`, rejected: []Rule{Revoke}},
	{sql: `revoke execute on function price from "${APP_ROLE}"`, rejected: []Rule{Revoke}},
	{sql: `create function a() returns int language sql as 'select 1'; revoke all on function a() from public`, accepted: Revoke},
	{sql: `grant delete on visits to "${APP_ROLE}"`, accepted: Revoke},

	{sql: `lock table visits`, rejected: []Rule{TableLock}},
	{sql: `truncate visits`, rejected: []Rule{TableLock}},
	{sql: `cluster visits`, rejected: []Rule{TableLock}},
	{sql: noTx + `vacuum full visits`, rejected: []Rule{TableLock}},
	{sql: `refresh materialized view totals`, rejected: []Rule{TableLock}},
	{sql: `alter table visits set unlogged`, rejected: []Rule{TableLock}},
	{sql: `alter table days attach partition day for values from (minvalue) to (maxvalue)`, rejected: []Rule{TableLock}},
	{sql: `alter table days detach partition day`, rejected: []Rule{TableLock}},
	{sql: noTx + `alter table days detach partition day concurrently`, accepted: TableLock},
	{sql: `create table new (id uuid primary key); alter table days attach partition new for values from (minvalue) to (maxvalue)`, accepted: TableLock},
	{sql: noTx + `vacuum visits; refresh materialized view concurrently totals`, accepted: TableLock},
	{sql: `update visits set note = ''`, rejected: []Rule{BulkWrite}},
	{sql: `with old as (delete from visits where note = '' returning id) select count(*) from old`, rejected: []Rule{BulkWrite}},
	{sql: `alter table visits add column a int; create table new (id uuid); insert into new select id from visits`, rejected: []Rule{BulkWrite}},
	{sql: `create trigger a before insert on visits execute function price(); create table new (id uuid); insert into new select id from day`, rejected: []Rule{BulkWrite}},
	{sql: `create table new (id uuid); insert into new select id from visits; update new set id = null`, accepted: BulkWrite},
	{sql: `alter table visits add column a int; insert into day (id) values (null)`, accepted: BulkWrite},
	{sql: `set lock_timeout = 0`, rejected: []Rule{LockTimeout}},
	{sql: `set local lock_timeout = '2s'`, rejected: []Rule{LockTimeout}},
	{sql: `set lock_timeout = '1 min'`, rejected: []Rule{LockTimeout}},
	{sql: `select set_config('lock_timeout', '301ms', true)`, rejected: []Rule{LockTimeout}},
	{sql: `set lock_timeout = 300; set local lock_timeout = '100 ms'; reset lock_timeout; set statement_timeout = 0`, accepted: LockTimeout},
	{sql: `do $$ begin drop table visits; end $$`, rejected: []Rule{Unreadable}},
	{sql: `call change()`, rejected: []Rule{Unreadable}},
	{sql: `alter type state add value 'closed'`, accepted: Unreadable},
	{sql: `select protect('visits')`, accepted: Unreadable},
}

const noTx = "-- +goose NO TRANSACTION\n"

// second returns the second file with the statements.
func second(sql string) string {
	header := ""
	if rest, ok := strings.CutPrefix(sql, noTx); ok {
		header, sql = noTx, rest
	}
	return header + "-- +goose Up\n" + sql + ";\n\n-- +goose Down\ndrop table visits;\n"
}

// lint returns the findings of the second file of a folder.
func lint(t *testing.T, text string) []Finding {
	t.Helper()
	findings, err := Lint(fstest.MapFS{"00001_first.sql": {Data: []byte(first)}, "00002_second.sql": {Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

func TestStatements(t *testing.T) {
	t.Parallel()
	for _, s := range statements {
		t.Run(s.sql, func(t *testing.T) {
			t.Parallel()
			var broken []Rule
			for _, f := range lint(t, second(s.sql)) {
				broken = append(broken, f.Rule)
			}
			if !slices.Equal(broken, s.rejected) {
				t.Errorf("it breaks %q, want %q", broken, s.rejected)
			}
		})
	}
}

func TestEachRuleHasBothCases(t *testing.T) {
	t.Parallel()
	for _, rule := range Rules() {
		rejected, accepted := false, false
		for _, s := range statements {
			rejected = rejected || slices.Contains(s.rejected, rule)
			accepted = accepted || s.accepted == rule
		}
		if !rejected || !accepted {
			t.Errorf("%s: rejected %v, accepted %v: add a row to statements", rule, rejected, accepted)
		}
	}
}

func TestExceptions(t *testing.T) {
	t.Parallel()
	const allow = "-- migrationlint:allow "
	for name, c := range map[string]struct{ text, want string }{
		"of a statement":            {"-- +goose Up\n" + allow + "drop-column: 1.2.0 does not use it\nalter table visits drop column note;\n", ""},
		"among other comments":      {"-- +goose Up\n-- A comment.\n" + allow + "drop-column: 1.2.0 does not use it\n-- Another one.\nalter table visits drop column note;\n", ""},
		"of a file":                 {allow + "drop-column: 1.2.0 does not use them\n-- +goose Up\nalter table visits drop column note;\nalter table visits drop column code;\n", ""},
		"of the previous statement": {"-- +goose Up\n" + allow + "drop-column: unused\nalter table visits drop column note;\nalter table visits drop column code;\n", "4 drop-column"},
		"of another rule":           {"-- +goose Up\n" + allow + "rename: no\nalter table visits drop column note;\n", "3 drop-column, 2 exception"},
		"without a statement":       {"-- +goose Up\nselect 1;\n" + allow + "rename: no\n", "3 exception"},
		"without a reason":          {"-- +goose Up\n" + allow + "drop-column\nalter table visits drop column note;\n", "2 exception, 3 drop-column"},
		"of no rule":                {"-- +goose Up\n" + allow + "everything: please\nselect 1;\n", "2 exception"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var found []string
			for _, f := range lint(t, c.text) {
				found = append(found, fmt.Sprintf("%d %s", f.Line, f.Rule))
			}
			if strings.Join(found, ", ") != c.want {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

func TestFoldersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for want, files := range map[string]fstest.MapFS{
		"contains no *.sql":         {"note.txt": {}},
		"-- +goose Up":              {"00001_a.sql": {Data: []byte("create table a (id int);")}},
		"00001_a.sql: syntax error": {"00001_a.sql": {Data: []byte("-- +goose Up\ncreate tabel a (id int);")}},
	} {
		if _, err := Lint(files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

// TestMigrationsOfTheServices is what make lint runs, without the command.
func TestMigrationsOfTheServices(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("../../../services/*/migrations")
	if err != nil || len(folders) == 0 {
		t.Fatal(folders, err)
	}
	for _, folder := range append(folders, "../../../libs/pg/migrations") {
		findings, err := Lint(os.DirFS(folder))
		if err != nil {
			t.Fatal(folder, err)
		}
		for _, f := range findings {
			t.Errorf("%s/%v", folder, f)
		}
	}
}

// TestLimitOfLocks compares the longest lock_timeout with the one that migrations run with.
func TestLimitOfLocks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../libs/pg/alter.go")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(`lockTry += %d \* time\.Millisecond`, maxLockTimeout.Milliseconds()); !regexp.MustCompile(want).Match(text) {
		t.Errorf("libs/pg does not match %q", want)
	}
}
