package domain

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var states = []Status{Pending, Confirmed, Expired, Cancelled, Completed, NoShow}

func TestTransitionTable(t *testing.T) {
	t.Parallel()
	want := map[Status]string{
		Pending: "cancelled confirmed expired", Confirmed: "cancelled completed no_show",
		Completed: "no_show", NoShow: "completed", Cancelled: "", Expired: "",
	}
	if len(transitions) != len(states) {
		t.Errorf("%d states have a row", len(transitions))
	}
	for _, s := range states {
		row, ok := transitions[s]
		var to []string
		for _, next := range row {
			if _, known := transitions[next]; !known {
				t.Errorf("%s leads to %s, which has no row", s, next)
			}
			to = append(to, string(next))
		}
		slices.Sort(to)
		if !ok || strings.Join(to, " ") != want[s] {
			t.Errorf("%s leads to %v", s, to)
		}
		if s.Final() != (len(row) == 0) {
			t.Errorf("%s: final %v", s, s.Final())
		}
	}
	for to, action := range actionFor {
		if to == Expired || to == Pending {
			t.Errorf("a client reaches %s by %s", to, action)
		}
	}
}

// TestDiagram checks that the diagram in the README equals the table.
func TestDiagram(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "stateDiagram-v2\n")
	diagram, _, _ := strings.Cut(rest, "```")
	var drawn []string
	for line := range strings.Lines(diagram) {
		if line = strings.TrimSpace(line); line != "" {
			drawn = append(drawn, line)
		}
	}
	want := []string{"[*] --> pending", "[*] --> confirmed"}
	for from, row := range transitions {
		for action, to := range row {
			want = append(want, fmt.Sprintf("%s --> %s: %s", from, to, action))
		}
		if from.Final() {
			want = append(want, fmt.Sprintf("%s --> [*]", from))
		}
	}
	slices.Sort(drawn)
	slices.Sort(want)
	if !slices.Equal(drawn, want) {
		t.Errorf("the README draws\n%s\nthe table is\n%s", strings.Join(drawn, "\n"), strings.Join(want, "\n"))
	}
}
