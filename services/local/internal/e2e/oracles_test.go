package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// note notes the objects in a response, for afterwards.
func (s *prover) note(t *testing.T, body []byte) {
	t.Helper()
	var v any
	if json.Unmarshal(body, &v) == nil {
		s.noteAll(v)
	}
}

func (s *prover) noteAll(v any) {
	switch v := v.(type) {
	case map[string]any:
		id, _ := v["id"].(string)
		if v["version"] != nil {
			s.objects[id] = true
		}
		for _, property := range v {
			s.noteAll(property)
		}
	case []any:
		for _, one := range v {
			s.noteAll(one)
		}
	}
}

// whole are the tables of objects of which each version has an event, by prefix of their IDs.
var whole = map[string][2]string{"bk": {"bookings", "bookings"}, "cu": {"customers", "customers"}, "ld": {"customers", "leads"}}

// afterwards checks what must hold after all runs.
func (s *prover) afterwards(t *testing.T) {
	if err := s.afterRuns(t); err != nil {
		t.Error(err)
	}
	t.Logf("%d objects", len(s.objects))
}

// afterRuns returns an error if an object has two events of a version or a version without one, claims overlap, more was returned than
// received, numbers have a gap, or an operation or a transaction stays unfinished.
func (s *prover) afterRuns(t *testing.T) error {
	t.Helper()
	s.endLeases(t)
	wrong := append(s.unfinished(t), s.wrongEvents(t)...)
	for end := time.Now().Add(40 * time.Second); len(wrong) > 0 && time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		now := append(s.unfinished(t), s.wrongEvents(t)...)
		wrong = slices.DeleteFunc(wrong, func(one string) bool { return !slices.Contains(now, one) }) // other tests begin operations
	}
	var accounts []string
	for id := range s.objects {
		accounts = append(accounts, stored(id))
	}
	for _, c := range []struct {
		service, sql string
		args         []any
	}{
		{"bookings", `select 'claims overlap: ' || a.unit_id from unit_claims a join unit_claims b on (a.tenant_id, a.livemode, a.unit_id) =
			(b.tenant_id, b.livemode, b.unit_id) and a.ctid < b.ctid and a.during && b.during`, nil},
		{"bookings", `select 'too many seats: ' || unit_id from unit_claims where taken > capacity`, nil},
		{"payments", `select 'more returned than received: ' || id from money_accounts where returned > received and id::text = any($1)`, []any{accounts}},
		{"bookings", `select 'a transaction stays open: ' || pid from pg_stat_activity where state like 'idle in transaction%' and
			state_change < now() - interval '10 seconds'`, nil},
	} {
		wrong = append(wrong, rows(t, s.databases[c.service], c.sql, c.args...)...)
	}
	if len(s.gaps) == 0 { // otherwise a seeded fault has left some
		wrong = append(wrong, gaps(t, shared)...)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d objects are wrong: %v", len(wrong), wrong[:min(len(wrong), 10)])
	}
	return nil
}

// unfinished returns the operations that no process has completed.
func (s *prover) unfinished(t *testing.T) (list []string) {
	t.Helper()
	for service, all := range map[string][][2]string{
		"customers": {{"quotes", "accept_until"}, {"leads", "converting_until"}, {"credit_notes", "call_until"}, {"charges", "call_until"}},
		"payments":  {{"payment_intents", "leased_until"}, {"refunds", "leased_until"}},
	} {
		for _, c := range all {
			list = append(list, rows(t, s.databases[service], fmt.Sprintf("select '%[1]s ' || id from %[1]s where %[2]s is not null", c[0], c[1]))...)
		}
	}
	return list
}

// wrongEvents returns the objects whose events are not those of their versions.
func (s *prover) wrongEvents(t *testing.T) (list []string) {
	t.Helper()
	versions := map[string]string{} // by ID in the database
	for prefix, c := range whole {
		for _, one := range rows(t, s.databases[c[0]], `select '`+prefix+` ' || id || ' ' || version from `+c[1]+` where updated_at >= $1`, s.since) {
			parts := strings.Fields(one)
			versions[parts[0]+parts[1]] = parts[2]
		}
	}
	found := map[string][]string{}
	for _, one := range rows(t, s.databases["webhooks"], `select object_id || ' ' || (convert_from(body, 'UTF8')::json->>'resource_version')
		from events where object_id = any($1) order by (convert_from(body, 'UTF8')::json->>'resource_version')::int`, slices.Collect(maps.Keys(s.objects))) {
		id, version, _ := strings.Cut(one, " ")
		found[id] = append(found[id], version)
	}
	for id := range s.objects {
		prefix, _, _ := strings.Cut(id, "_")
		got := found[id]
		if len(slices.Compact(slices.Clone(got))) != len(got) {
			list = append(list, fmt.Sprintf("%s has two events of a version: %v", id, got))
		}
		if _, ok := whole[prefix]; !ok {
			continue
		}
		var want []string
		last := 0
		if _, err := fmt.Sscan(versions[prefix+stored(id)], &last); err != nil {
			continue // deleted
		}
		for n := range last {
			want = append(want, fmt.Sprint(n+1))
		}
		if !slices.Equal(got, want) {
			list = append(list, fmt.Sprintf("%s has version %d and events of %v", id, last, got))
		}
	}
	return list
}

// record appends the result of a run to the file that the variable PROOF_RESULTS names, for docs/proof.md.
func record(t *testing.T, test string, begin time.Time, result map[string]any) {
	t.Helper()
	file := os.Getenv("PROOF_RESULTS")
	if file == "" {
		return
	}
	result["test"], result["commit"], result["seconds"] = test, os.Getenv("PROOF_COMMIT"), int(time.Since(begin).Seconds())
	line, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}
