package pgtest

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
)

// Forms returns the id of a tenant as a row can contain it: as text, and as a uuid in text and in bytes.
func Forms(tenant ids.Tenant) []string {
	u := tenant.UUID()
	raw := hex.EncodeToString(u[:])
	return []string{tenant.String(), fmt.Sprintf("%s-%s-%s-%s-%s", raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:]), raw}
}

// Find returns the tables of a database with a row that contains one of the texts, as "<table>: <number of rows>". It searches all columns
// of all tables, also json, arrays and bytes, without regard to case. It cannot find texts in sealed values.
func Find(t testing.TB, conn *pgx.Conn, texts ...string) (found []string) {
	t.Helper()
	rows, err := conn.Query(t.Context(), `select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'm') and n.nspname <> 'information_schema' and n.nspname not like 'pg\_%' order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if n := Containing(t, conn, table, texts...); n != 0 {
			found = append(found, fmt.Sprintf("%s: %d", table, n))
		}
	}
	return found
}

// Containing counts the rows of a table whose text contains one of the texts, or its bytes in hex.
func Containing(t testing.TB, conn *pgx.Conn, table string, texts ...string) (n int64) {
	t.Helper()
	var forms []string
	for _, text := range texts {
		forms = append(forms, strings.ToLower(text), hex.EncodeToString([]byte(text)))
	}
	err := conn.QueryRow(t.Context(), `select count(*) from only `+table+` r
		where exists (select from unnest($1::text[]) w where position(w in lower(r::text)) > 0)`, forms).Scan(&n)
	if err != nil {
		t.Fatalf("%s: %v", table, err)
	}
	return n
}
