// Package models checks the protocols in this folder, which are written in Quint (https://quint-lang.org).
package models

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// protocol is a model with its invariants, and states that it must reach.
type protocol struct {
	name, invariants, witnesses string
	steps                       int
	mutants                     []mutant // the first ones are found soon
}

// mutant is a model in which a text is replaced. It must violate an invariant.
type mutant struct{ name, old, new, violated string }

var protocols = []protocol{
	{
		name: "accept", steps: 30, invariants: "completeOrNothing once oneHolder eventPerVersion visible",
		witnesses: "acceptedByCompleter refused cancelledMeanwhile lateRequest expiredAfterAttempt",
		mutants: []mutant{
			{"a quote is declined while it is being accepted", `quote.status == "sent", not(quote.accepting), moveQuote`, `quote.status == "sent", moveQuote`, "completeOrNothing"},
			{"a quote has two bookings", `val found = booking.created > 0`, `val found = false`, "once"},
			{"a request is valid for longer than its lease", `requests' = Set(), // a request`, `requests' = requests, // a request`, "completeOrNothing"},
			{"a request is sent after its lease", "      p.inTime,\n", "", "completeOrNothing"},
			{"an earlier attempt releases the quote", `if (mine(p)) all { quote' =`, `if (true) all { quote' =`, "completeOrNothing"},
		},
	},
	{
		name: "hold", steps: 30, invariants: "oneHolder finalStates backed shown settled",
		witnesses: "paidLate confirmedByPayment expiredByOther cancelledAfterPayment closed",
		mutants: []mutant{
			{"a slot is taken without a look at its holder", "    not(booking.claims) or gone,\n", "", "oneHolder"},
			{"a payment confirms a lapsed hold", `val now = if (gone) "expired" else if`, `val now = if`, "finalStates"},
			{"an older state of the account is applied", `all { v > booking.account, become(`, `all { v != booking.account, become(`, "shown"},
			{"an intent is created for a lost booking", "    intent == \"none\",\n    not(lost(copy.status)),\n", "    intent == \"none\",\n", "settled"},
			{"a payment after the end of the booking is not settled", `due' = { ...due, settle: due.settle or lost(copy.status) }`, `due' = due`, "settled"},
			{"a refund that has begun does not count", `due.owed > account.returned + account.held`, `due.owed > account.returned`, "backed"},
		},
	},
	{
		name: "unknown", steps: 25, invariants: "oneIntent truthful storedOnce",
		witnesses: "openAfterUnknown openAfterForgotten refusedForGood foundAfterBroken lateCall",
		mutants: []mutant{
			{"a repeated call has another idempotency key", `val first = not(known.keys().contains(c.attempt))`, `val first = true`, "oneIntent"},
			{"a repeated request begins another intent", `if (row.status == "none" or row.status == "refused")`, `if (row.status != "open")`, "oneIntent"},
			{"a repeated call that Stripe does not look at counts as refused", `p.answer == "unread" and p.fresh`, `p.answer == "unread"`, "truthful"},
			{"a call is repeated after Stripe has forgotten it", "      not(row.forgotten and row.attempt == p.attempt),\n", "", "oneIntent"},
			{"a new attempt begins without a look for the intent", `val found = created > 0`, `val found = false`, "oneIntent"},
			{"an earlier process releases the intent", `row.attempt == p.attempt and row.lease == p.lease`, `row.attempt == p.attempt`, "truthful"},
		},
	},
	{
		name: "ledger", steps: 25, invariants: "backed countedOnce refusedHasNoEffect viewIsAState",
		witnesses: "paidByTwo handedBack refusedAfterMove reversed",
		mutants: []mutant{
			{"a reversal ignores what was returned", `p.op == "pay" or amount <=`, `p.op != "credit" or amount <=`, "backed"},
			{"payments accepts a decision on an old version", `val moved = p.op != "reverse" and p.version != account.version`, `val moved = false`, "backed"},
			{"an invoice is voided while a payment is recorded", `processes.get(n).op == "void" and v.calls == Map(),`, `processes.get(n).op == "void",`, "backed"},
			{"a resumed payment is not decided again", `attempt: c.attempt, version: -1 }`, `attempt: c.attempt, version: invoice.view.version }`, "backed"},
			{"a repeated reversal reverses again", `val known = entries.keys()`, `val known = p.op != "reverse" and entries.keys()`, "countedOnce"},
		},
	},
}

const (
	easy    = 3   // mutants in a short run
	samples = 300 // traces in one run of quint
	maxWait = 2 * time.Minute
)

func full() bool { return os.Getenv("TEST_SCALE") == "full" }

// TestModels runs each model for some seconds, until its invariants hold in all traces and each of its states was reached. It then checks
// that the invariants are violated in each mutant. A short run takes the easy ones.
func TestModels(t *testing.T) {
	t.Parallel()
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(p.name + ".qnt")
			if err != nil {
				t.Fatal(err)
			}
			if lines := bytes.Count(text, []byte("\n")); lines > 200 {
				t.Errorf("%d lines, want at most 200", lines)
			}
			begin := time.Now()
			traces := p.hold(t)
			if !full() {
				p.mutants = p.mutants[:easy]
			}
			found := 0
			for _, m := range p.mutants {
				if m.found(t, p, string(text)) {
					found++
				}
			}
			record(t, p, traces, found, time.Since(begin))
		})
	}
}

// hold runs the model for some seconds, and until each state was reached. It returns the number of traces.
func (p protocol) hold(t *testing.T) (traces int) {
	t.Helper()
	long := 3 * time.Second
	if full() {
		long = 5 * time.Minute
	}
	seen := map[string]int{}
	for begin := time.Now(); ; {
		out, violated := p.run(t, p.name+".qnt", p.invariants, p.witnesses)
		if violated {
			t.Fatal(out)
		}
		traces += samples
		missing := ""
		for state := range strings.FieldsSeq(p.witnesses) {
			if seen[state] += witnessed(out, state); seen[state] == 0 {
				missing += " " + state
			}
		}
		switch since := time.Since(begin); {
		case missing == "" && since > long:
			t.Logf("%d traces in %v; reached %v", traces, since.Round(time.Second), seen)
			return traces
		case since > max(long, maxWait):
			t.Fatalf("not reached in %d traces:%s", traces, missing)
		}
	}
}

// witnessed returns in how many traces a state was reached.
func witnessed(out, state string) int {
	found := regexp.MustCompile(state + ` was witnessed in (\d+) trace`).FindStringSubmatch(out)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

// found reports whether the mutant violates its invariants.
func (m mutant) found(t *testing.T, p protocol, text string) bool {
	t.Helper()
	if strings.Count(text, m.old) != 1 {
		t.Errorf("%s: the model contains %q %d times", m.name, m.old, strings.Count(text, m.old))
		return false
	}
	file := filepath.Join(t.TempDir(), p.name+".qnt")
	if err := os.WriteFile(file, []byte(strings.Replace(text, m.old, m.new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for begin, traces := time.Now(), 0; time.Since(begin) < maxWait; traces += samples {
		if out, violated := p.run(t, file, m.violated, ""); violated {
			t.Logf("found after at most %d traces: %s\n%s", traces+samples, m.name, strings.TrimSpace(out))
			return true
		}
	}
	t.Errorf("%s: no violation of %s within %v", m.name, m.violated, maxWait)
	return false
}

// run runs quint once. violated reports whether an invariant does not hold.
func (p protocol) run(t *testing.T, file, invariants, witnesses string) (out string, violated bool) {
	t.Helper()
	args := []string{
		"run", file, "--main=" + p.name, "--backend=typescript", "--verbosity=1", fmt.Sprintf("--max-samples=%d", samples), fmt.Sprintf("--max-steps=%d", p.steps),
		"--invariants",
	}
	args = append(append(append(args, strings.Fields(invariants)...), "--witnesses"), strings.Fields(witnesses)...)
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	b, err := exec.CommandContext(ctx, "../.ci/quint", args...).CombinedOutput()
	violated = bytes.Contains(b, []byte("[violation]"))
	if exit := (*exec.ExitError)(nil); err != nil && (!violated || !errors.As(err, &exit)) {
		t.Fatalf("quint: %v\n%s", err, b)
	}
	return string(b), violated
}

// record appends what was run to the file that PROOF_RESULTS names.
func record(t *testing.T, p protocol, traces, found int, took time.Duration) {
	t.Helper()
	path := os.Getenv("PROOF_RESULTS")
	if path == "" {
		return
	}
	line, err := json.Marshal(map[string]any{
		"test": "models", "model": p.name, "commit": os.Getenv("PROOF_COMMIT"), "seconds": int(took.Seconds()), "samples": traces, "steps": p.steps,
		"mutants": len(p.mutants), "found": found, "traces": 0,
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
