package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/services/local/internal/prove"
)

// seeded is a fault that TestSeededFaults puts into a copy of a service.
type seeded struct {
	name, service string
	edits         []edit
	first, second string // the pair of writes that shows it; without second, breaks of the first one
}

// edit replaces each old text by a new one in a file.
type edit struct{ file, old, new string }

// easy is the number of the first faults, which the first runs find.
const easy = 4

var seededFaults = []seeded{
	{"a booking is not locked before a change", "bookings", []edit{
		{"services/bookings/internal/store/booking.go", `bookings.Get(ctx, tx, id, "for update")`, `bookings.Get(ctx, tx, id, "")`},
		{"services/bookings/internal/store/unit.go", "order by u.id for no key update`, pg.Args{\"booking\"", "order by u.id`, pg.Args{\"booking\""},
	}, "confirm it", "cancel it"},
	{"a closure does not lock its units", "bookings", []edit{
		{"services/bookings/internal/store/closure.go", `order by u.id for no key update`, `order by u.id`},
	}, "book a free slot", "close the unit"},
	{"a booking does not lock its unit", "bookings", []edit{
		{"services/bookings/internal/store/refs.go", `u.id = @unit for no key update of u`, `u.id = @unit`},
	}, "book a free slot", "close the unit"},
	{"a quote is not locked before a change", "customers", []edit{
		{"services/customers/internal/store/quote.go", `quotes.Get(ctx, tx, id, "for update")`, `quotes.Get(ctx, tx, id, "")`},
	}, "decline it", "cancel the quote"},
	{"a quote is declined while it is being accepted", "customers", []edit{
		{"services/customers/internal/app/quote.go", `if current.Accepting.UnderWay() {`, `if false {`},
	}, "accept it", "decline it"},
	{"the money of an account is not locked", "customers", []edit{
		{"services/customers/internal/store/account.go", `pg_advisory_xact_lock(hashtextextended('money of '`, `(hashtextextended('money of '`},
	}, "pay all", "void it"},
	{"payments accepts a decision on an old version", "payments", []edit{
		{"services/payments/internal/domain/money_account.go", "		return ErrAccountMoved", "		return nil"},
	}, "pay all", "pay a part"},
	{"an invoice is voided while a payment is recorded", "customers", []edit{
		{"services/customers/internal/app/account.go", "if account.Calling {", "if account.Calling && false {"},
	}, "pay all", "void it"},
	{"the response is recorded under another key", "bookings", []edit{
		{"libs/idemstore/store.go", "req.Key, req.Fingerprint[:], r.ExpiresAt", "req.Key+`x`, req.Fingerprint[:], r.ExpiresAt"},
	}, "book a free slot", ""},
	{"a repeated payment is not resumed", "customers", []edit{
		{"services/customers/internal/app/payment.go", "if begun == \"\" {\n\t\treturn false, o.begin", "if true {\n\t\treturn false, o.begin"},
	}, "pay a part", ""},
	{"a repeated credit note is not resumed", "customers", []edit{
		{"services/customers/internal/app/credit_note.go", "if begun == \"\" {\n\t\taccount", "if true {\n\t\taccount"},
	}, "credit a part and hand it back", ""},
	{"a repeated refund is not resumed", "payments", []edit{
		{"services/payments/internal/app/refund.go", "if found != nil {\n\t\treturn o.resume", "if found != nil && false {\n\t\treturn o.resume"},
	}, "refund 40.00", ""},
	{"a credit note is issued while a payment is recorded", "customers", []edit{
		{"services/customers/internal/app/credit_note.go", "if account.Calling {", "if account.Calling && false {"},
	}, "pay the rest", "credit all"},
	{"a lead is lost while it is converted", "customers", []edit{
		{"services/customers/internal/app/lead.go", "if err == nil && l.Conversion.UnderWay() {", "if err == nil && false {"},
	}, "convert it", "lose it"},
	{"the conversion of a lead is not locked", "customers", []edit{
		{"services/customers/internal/store/lead.go", `"for update of l"`, `""`},
	}, "convert it into a customer", "lose it"},
	{"the response to a quote is recorded under another key", "customers", []edit{
		{"libs/idemstore/store.go", "req.Key, req.Fingerprint[:], r.ExpiresAt", "req.Key+`x`, req.Fingerprint[:], r.ExpiresAt"},
	}, "quote again", ""},
	{"the response to an intent is recorded under another key", "payments", []edit{
		{"libs/idemstore/store.go", "req.Key, req.Fingerprint[:], r.ExpiresAt", "req.Key+`x`, req.Fingerprint[:], r.ExpiresAt"},
	}, "hand back 30.00", ""},
	{"the account of a booking is not locked", "payments", []edit{
		{"services/payments/internal/store/money_account.go", "+ thatAccount + ` for update`", "+ thatAccount"},
	}, "refund all", "hand back 30.00"},
	{"a confirmation has no event", "bookings", []edit{
		{"services/bookings/internal/app/events.go", "Object: body, Previous: previous,", "Object: body, Previous: previous, Internal: b.Status == domain.Confirmed,"},
	}, "confirm it", "change its notes"},
	{"the catalogue has several writers", "bookings", []edit{
		{"services/bookings/internal/store/catalogue.go", "select pg_advisory_xact_lock(hashtext('catalogue'),", "select (hashtext('catalogue')#"},
	}, "stop the service", "take the unit from the service"},
	{"requests with one key do not wait for each other", "bookings", []edit{
		{"libs/idemstore/store.go", "`select pg_advisory_xact_lock(hashtextextended('idempotency key'", "`select (hashtextextended('idempotency key'"},
	}, "add a unit", "add a unit, repeated"},
	{"an event has the version before the change", "bookings", []edit{
		{"services/bookings/internal/app/events.go", `Type: "booking.updated", Topic: topic, AggregateID: b.ID.String(), Version: b.Version,`, `Type: "booking.updated", Topic: topic, AggregateID: b.ID.String(), Version: b.Version - 1,`},
	}, "confirm it", "change its notes"},
	{"an invoice is not locked before a change", "customers", []edit{
		{"services/customers/internal/store/invoice.go", `invoices.Get(ctx, tx, id, "for update")`, `invoices.Get(ctx, tx, id, "")`},
	}, "open it", "delete the invoice"},
	{"the numbers of invoices are not in order", "customers", []edit{
		{"services/customers/internal/store/invoice.go", "update set next = n.next + 1 returning n.next - 1 as seq", "update set next = n.next + 2 returning n.next - 1 as seq"},
	}, "open it", "change its lines"},
}

// TestSeededFaults builds services with a fault each, and checks that TestOrders finds it. A short run takes one of the easy ones.
func TestSeededFaults(t *testing.T) {
	faults := seededFaults
	if !full() {
		faults = []seeded{faults[rand.IntN(easy)]}
	}
	begin, runs := time.Now(), map[string]int{}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			s := newProver(t, shared, f)
			if n, err := s.find(t, f); err == nil {
				t.Errorf("not found in %d runs", n)
			} else {
				runs[f.name] = n + 1
				t.Logf("found in run %d: %s", n+1, err.Error()[:min(160, len(err.Error()))])
			}
		})
	}
	if found := slices.Sorted(maps.Values(runs)); len(found) > 0 {
		record(t, "seeds", begin, map[string]any{"faults": len(faults), "found": len(found), "fewest": found[0], "most": found[len(found)-1]})
	}
}

// find runs the writes of a fault until what clients see is wrong. It returns the number of runs and what is wrong.
func (s *prover) find(t *testing.T, f seeded) (runs int, err error) {
	t.Helper()
	for i := range families {
		one := []*family{&families[i]}
		for _, w := range operations(one) {
			if f.second == "" && w.action.name == f.first {
				s.warm(t, one...)
				counts := map[string]int{}
				err = s.crashes(t.Context(), t, w, counts)
				for _, n := range counts {
					runs += n
				}
				return runs, err
			}
		}
		for _, g := range pairs(one) {
			if g.actions[0].name == f.first && g.actions[1].name == f.second {
				s.warm(t, one...)
				runs, _, err = prove.Explore(t.Context(), 2, g.independent(), func(prefix prove.Schedule) ([]prove.Step, error) { return s.check(t, g, prefix) })
				if err == nil {
					err = s.settle(t, g)
				}
				if err == nil {
					err = s.afterRuns(t)
				}
				return runs, err
			}
		}
	}
	t.Fatalf("no writes %q and %q", f.first, f.second)
	return 0, nil
}

// build builds the service with the fault and returns its executable.
func (f seeded) build(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, replaced := t.TempDir(), map[string]string{}
	for i, e := range f.edits {
		source := filepath.Join(root, e.file)
		known := source
		if replaced[source] != "" {
			known = replaced[source] // by an edit before
		}
		text, err := os.ReadFile(known)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.ReplaceAll(string(text), e.old, e.new)
		if changed == string(text) {
			t.Fatalf("%s does not contain %s", e.file, e.old)
		}
		replaced[source] = filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(replaced[source], []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	overlay, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, f.service)
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program, "./services/"+f.service)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}
