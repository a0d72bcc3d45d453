package e2e

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestHistoryFaults builds services with a fault each, and checks that the history contradicts the claim that the fault breaks, also if
// nothing else fails. `make history` runs it.
func TestHistoryFaults(t *testing.T) {
	if os.Getenv("HISTORY") == "" {
		t.Skip("run `make history`: it builds and starts a platform for each fault")
	}
	for _, tc := range []struct {
		seeded
		claim, text string
	}{
		{seededFaults[0], "OBJ-1", "lost update"},
		{seeded{name: "a change of a quote has no event", service: "customers", edits: []edit{
			{"libs/outbox/outbox.go", "	message, err := proto.Marshal(", "	if e.Type == \"quote.updated\" && e.Version%3 == 0 {\n\t\treturn nil\n\t}\n	message, err := proto.Marshal("},
		}}, "EVENT-1", "no event"},
		{seeded{name: "a lead is read from a cache of the process", service: "customers", edits: []edit{
			{"libs/pg/table.go", "\treturn t.One(ctx, q, t.alias+\".id = @id \"+lock, Args{\"id\": id})\n}", `	if v, ok := cached.LoadAndDelete(id); ok && lock == "" && t.name == "leads" {
		return v.(T), nil
	}
	v, err := t.One(ctx, q, t.alias+".id = @id "+lock, Args{"id": id})
	if err == nil && lock == "" && t.name == "leads" {
		cached.Store(id, v)
	}
	return v, err
}

var cached sync.Map`},
		}}, "OBJ-1", "not linearizable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHistoryRun(t, false, tc.seeded)
			h.nemesis.faults = nil
			h.patient = 2 * time.Second
			h.run(t, 8*time.Second)
			for _, v := range h.report.Violations {
				if v.Claim == tc.claim && strings.Contains(v.Text, tc.text) {
					t.Logf("found in %d operations: %s", h.report.Operations, v.String()[:min(400, len(v.String()))])
					return
				}
			}
			t.Errorf("not found in %d operations; %d other violations", h.report.Operations, len(h.report.Violations))
		})
	}
}
