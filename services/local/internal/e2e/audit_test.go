package e2e

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestEachWriteIsAudited checks that each write of the chain has its audit record, with the API key and the names of the changed
// fields. No record contains personal data.
func TestEachWriteIsAudited(t *testing.T) {
	c := shared.as(t, "DEMO_TEST_KEY")
	key := read[struct{ ID string }](t, c, "/me").ID
	person := strings.ReplaceAll(unique("Ada"), "-", "")
	unit := c.want(t, http.StatusCreated, http.MethodPost, "/units", `{"name":"Audit"}`).id(t)
	fields := `{"first_name":"` + person + `","email":"` + person + `@example.com"}`
	customer := c.want(t, http.StatusCreated, http.MethodPost, "/customers", fields).id(t)
	c.want(t, http.StatusOK, http.MethodPatch, "/customers/"+customer, `{"last_name":"`+person+`","company":"`+person+`"}`)
	lead := c.want(t, http.StatusCreated, http.MethodPost, "/leads", fields).id(t)
	c.want(t, http.StatusOK, http.MethodPatch, "/leads/"+lead, `{"message":"I am `+person+`"}`)
	quote := newQuote(t, c, customer, lead, unit, chainDay(rand.IntN(10_000)))
	c.want(t, http.StatusOK, http.MethodPatch, "/quotes/"+quote, `{"notes":"for `+person+`"}`)
	var accepted chainQuote
	c.want(t, http.StatusOK, http.MethodPost, "/quotes/"+quote+"/accept", "").decode(t, &accepted)

	identity := shared.database(t, "identity")
	for object, want := range map[string][]string{
		unit:                   {"bookings unit.updated []"},
		customer:               {"customers customer.created []", `customers customer.updated ["company", "last_name", "name"]`},
		lead:                   {"customers lead.created []", `customers lead.updated ["message"]`, `customers lead.updated ["status"]`},
		accepted.InvoiceIDs[0]: {"customers invoice.created []"},
		accepted.BookingID:     {"bookings booking.created []"},
	} {
		for i := range want {
			want[i] = key + " " + want[i]
		}
		var got []string
		await(t, "the records of "+object, func() bool {
			got = rows(t, identity, `select actor || ' ' || source || ' ' || action || ' ' || (after->'fields')::text from audit_log where object = $1 order by 1`, object)
			return len(got) >= len(want)
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", object, got, want)
		}
	}
	await(t, "the record of the accept", func() bool {
		return slices.Equal(rows(t, identity, `select actor from audit_log where object = $1 and action = 'quote.accepted'`, quote), []string{key})
	})
	if n := rows(t, identity, `select object from audit_log l where l::text ilike '%' || $1 || '%'`, person); len(n) != 0 {
		t.Errorf("records of %v hold values of a person", n)
	}
	if out, err := shared.command("identity", "audit", "verify").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	out, err := shared.command("identity", "audit", "list", "--tenant", "demo", "--object", quote).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "quote.accepted") || !strings.Contains(string(out), key) {
		t.Errorf("%v: %s", err, out)
	}
}
