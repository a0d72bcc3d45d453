package domain

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLeadTransitions(t *testing.T) {
	t.Parallel()
	states := []LeadStatus{LeadNew, LeadContacted, LeadQualified, LeadQuoted, LeadConverted, LeadLost}
	want := map[LeadStatus]string{
		LeadNew: "contacted converted lost qualified quoted", LeadContacted: "converted lost qualified quoted",
		LeadQualified: "converted lost quoted", LeadQuoted: "converted lost", LeadLost: "contacted", LeadConverted: "",
	}
	if len(leadTransitions) != len(states) {
		t.Errorf("%d states have a row", len(leadTransitions))
	}
	for _, s := range states {
		var to []string
		for _, next := range leadTransitions[s] {
			if _, known := leadTransitions[next]; !known {
				t.Errorf("%s leads to %s, which has no row", s, next)
			}
			to = append(to, string(next))
		}
		slices.Sort(to)
		if strings.Join(to, " ") != want[s] || s.Final() != (want[s] == "") {
			t.Errorf("%s leads to %v, final %v", s, to, s.Final())
		}
	}
	for to := range leadActionFor {
		if to == LeadConverted || to == LeadNew {
			t.Errorf("a change of the status reaches %s", to)
		}
	}
}

// TestLeadDiagram checks that the diagram of leads in the README equals the table.
func TestLeadDiagram(t *testing.T) {
	t.Parallel()
	want := []string{"[*] --> new"}
	for from, row := range leadTransitions {
		for action, to := range row {
			want = append(want, fmt.Sprintf("%s --> %s: %s", from, to, action))
		}
		if from.Final() {
			want = append(want, fmt.Sprintf("%s --> [*]", from))
		}
	}
	sameDiagram(t, "Lead", want)
}

// sameDiagram compares the lines of the diagram under a heading of the README with the given ones.
func sameDiagram(t *testing.T, heading string, want []string) {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "### "+heading+"\n")
	_, rest, _ = strings.Cut(rest, "stateDiagram-v2\n")
	diagram, _, _ := strings.Cut(rest, "```")
	var drawn []string
	for line := range strings.Lines(diagram) {
		if line = strings.TrimSpace(line); line != "" {
			drawn = append(drawn, line)
		}
	}
	slices.Sort(drawn)
	slices.Sort(want)
	if !slices.Equal(drawn, want) {
		t.Errorf("the README draws\n%s\nthe table is\n%s", strings.Join(drawn, "\n"), strings.Join(want, "\n"))
	}
}

func TestSearchTermsOfALead(t *testing.T) {
	t.Parallel()
	l := Lead{FirstName: "Anna", LastName: new("Smith"), Email: new("a.s@b.co"), Company: new("Acme Ltd")}
	if got := strings.Join(l.SearchTerms(), " "); got != "anna smith a.s@b.co s@b.co b.co co acme ltd" {
		t.Errorf("got %s", got)
	}
	if got := (Lead{FirstName: "Bo"}).SearchTerms(); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestEraseALead(t *testing.T) {
	t.Parallel()
	day := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	l := Lead{
		Source: new("web"), FirstName: "A", LastName: new("B"), Email: new("c"), Phone: new("d"), Company: new("e"), Message: new("f"),
		LostReason: new("g"), Metadata: []byte(`{"h":"i"}`), EventAt: &day, GuestCount: new(3),
	}
	got := l.Erase()
	if got.FirstName != "" || got.LastName != nil || got.Email != nil || got.Phone != nil || got.Company != nil || got.Message != nil ||
		got.LostReason != nil || got.Metadata != nil || *got.Source != "web" || got.EventAt == nil || *got.GuestCount != 3 {
		t.Errorf("got %+v", got)
	}
}
