package sqlbench

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const sampleLog = `2026-11-21 16:00:00.000 UTC [10] app@db LOG:  execute stmtcache_1: select set_config('app.tenant_id', $1, true)
2026-11-21 16:00:00.000 UTC [10] app@db DETAIL:  parameters: $1 = '0190-t'
2026-11-21 16:00:00.001 UTC [11] worker@db LOG:  statement: begin
2026-11-21 16:00:00.001 UTC [10] app@db LOG:  statement: begin
2026-11-21 16:00:00.002 UTC [10] app@db LOG:  execute stmtcache_2: 
	insert into t (id, name, note)
	values ($1, $2, $3)
2026-11-21 16:00:00.002 UTC [10] app@db DETAIL:  Parameters: $1 = 'a1', $2 = 'it''s, $9 = ''x''', $3 = NULL
2026-11-21 16:00:00.003 UTC [10] app@db LOG:  statement: commit
`

func TestParseReadsOneUsersStatementsWithTheirValues(t *testing.T) {
	t.Parallel()
	got, err := Parse(sampleLog, "app")
	if err != nil {
		t.Fatal(err)
	}
	var sql []string
	for _, s := range got {
		sql = append(sql, s.SQL)
	}
	want := []string{"select set_config('app.tenant_id', $1, true)", "begin", "insert into t (id, name, note)\nvalues ($1, $2, $3)", "commit"}
	if !slices.Equal(sql, want) {
		t.Fatalf("statements %q", sql)
	}
	if want := []Param{{Text: "a1"}, {Text: "it's, $9 = 'x'"}, {Null: true}}; !slices.Equal(got[2].Params, want) {
		t.Errorf("parameters %+v", got[2].Params)
	}
	if _, err := Parse(strings.ReplaceAll(sampleLog, "'a1'", "'a1"), "app"); err == nil {
		t.Error("a literal without an end is taken")
	}
}

// TestRequestsLeaveOutConsumersAndPings checks that a message that is consumed while a request is recorded, on the same
// connection or on another, is not part of the request.
func TestRequestsLeaveOutConsumersAndPings(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for _, line := range []string{
		"12 statement: update c", "12 statement: commit", "12 statement: select 0", "10 statement: -- ping", "10 statement: select 1", "10 statement: begin", "11 statement: begin", "10 statement: update a",
		"11 statement: insert into inbox (id)", "11 statement: update b", "10 statement: commit", "11 statement: commit", "10 statement: select 2",
		"10 statement: begin", "10 statement: insert into inbox (id)", "10 statement: commit", "10 statement: select 3",
	} {
		server, text, _ := strings.Cut(line, " ")
		log.WriteString("2026-11-21 16:00:00.000 UTC [" + server + "] app@db LOG:  " + text + "\n")
	}
	all, err := Parse(log.String(), "app")
	if err != nil {
		t.Fatal(err)
	}
	var sql []string
	for _, s := range Requests(all) {
		sql = append(sql, s.SQL)
	}
	if want := []string{"select 0", "select 1", "begin", "update a", "commit", "select 2", "select 3"}; !slices.Equal(sql, want) {
		t.Errorf("%q, want %q", sql, want)
	}
}

func TestScriptPreservesRoundTripsAndVariesValues(t *testing.T) {
	t.Parallel()
	statements, err := Parse(sampleLog, "app")
	if err != nil {
		t.Fatal(err)
	}
	first := func(_, s Statement) bool { return s.SQL == "begin" || s.SQL == "commit" }
	got, trips := Script(statements, Vary{
		Setup:  []string{`\set u :n % 64`},
		Values: map[string]string{"a1": "to_hex(:n)"},
		Special: func(s Statement, i int) string {
			if strings.HasPrefix(s.SQL, "insert into t") && i == 2 {
				return "'second'"
			}
			return ""
		},
	}, first)
	want := `\set i :i + 1
\set n :i * 16 + :client_id
\set u :n % 64
select set_config('app.tenant_id', '0190-t', true);
\startpipeline
begin;
insert into t (id, name, note) values (to_hex(:n), 'second', null);
\endpipeline
commit;
`
	if got != want || trips != 3 {
		t.Errorf("%d round trips:\n%s", trips, got)
	}
}

func TestLiteralsAreNoVariablesOfPgbench(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":    `'plain'`,
		"it's":     `'it''s'`,
		`{"a":b}`:  `E'{"a"\x3ab}'`,
		`\x00ff`:   `E'\x5cx00ff'`,
		"10:30:00": `E'10\x3a30\x3a00'`,
	} {
		if got := literal(in); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}

// TestRate checks that a report of pgbench without a rate is not a failure. This happens if nothing was committed in
// the time, as on a very busy machine.
func TestRate(t *testing.T) {
	t.Parallel()
	for report, want := range map[string]float64{
		"number of transactions actually processed: 3913\nnumber of failed transactions: 0 (0.000%)\ntps = 3902.25 (without initial connection time)\n": 3902.25,
		"number of transactions actually processed: 0\nnumber of failed transactions: 0 (NaN%)\n":                                                       0,
	} {
		if got, err := rate([]byte(report)); got != want || err != nil {
			t.Errorf("%v, %v of %q", got, err, report)
		}
	}
	if _, err := rate([]byte("number of transactions actually processed: 10\n")); !errors.Is(err, errPgbench) {
		t.Errorf("a report without a rate: %v", err)
	}
}
