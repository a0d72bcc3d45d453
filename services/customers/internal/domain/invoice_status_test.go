package domain

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestInvoiceTransitions(t *testing.T) {
	t.Parallel()
	want := map[InvoiceStatus]string{
		InvoiceDraft: "open paid", InvoiceOpen: "credited open paid partially_paid uncollectible void",
		InvoicePartiallyPaid: "credited open paid paid partially_paid partially_paid partially_paid uncollectible",
		InvoicePaid:          "credited open paid paid partially_paid",
		InvoiceUncollectible: "credited paid paid uncollectible uncollectible uncollectible uncollectible void", InvoiceVoid: "",
		InvoiceCredited: "credited credited open partially_paid",
	}
	if len(invoiceTransitions) != len(want) {
		t.Errorf("%d states have a row", len(invoiceTransitions))
	}
	for s, targets := range want {
		row, ok := invoiceTransitions[s]
		var to []string
		for _, next := range row {
			if _, known := invoiceTransitions[next]; !known {
				t.Errorf("%s leads to %s, which has no row", s, next)
			}
			to = append(to, string(next))
		}
		slices.Sort(to)
		if !ok || strings.Join(to, " ") != targets {
			t.Errorf("%s leads to %v", s, to)
		}
	}
}

// TestInvoiceDiagram checks that the diagram in the README equals the table.
func TestInvoiceDiagram(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "### Invoice\n")
	_, rest, _ := strings.Cut(section, "stateDiagram-v2\n")
	diagram, _, _ := strings.Cut(rest, "```")
	var drawn []string
	for line := range strings.Lines(diagram) {
		if line = strings.TrimSpace(line); line != "" {
			drawn = append(drawn, line)
		}
	}
	want := []string{"[*] --> draft"}
	for from, row := range invoiceTransitions {
		for action, to := range row {
			want = append(want, fmt.Sprintf("%s --> %s: %s", from, to, action))
		}
		if len(row) == 0 {
			want = append(want, fmt.Sprintf("%s --> [*]", from))
		}
	}
	slices.Sort(drawn)
	slices.Sort(want)
	if !slices.Equal(drawn, want) {
		t.Errorf("the README draws\n%s\nthe table is\n%s", strings.Join(drawn, "\n"), strings.Join(want, "\n"))
	}
}
