package command

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestSimilar checks which names an error suggests.
func TestSimilar(t *testing.T) {
	t.Parallel()
	names := []string{"--limit", "--cursor", "--unit-id", "--sort", "booking.created", "booking.updated"}
	for name, want := range map[string]string{
		"--limt": "--limit", "--curosr": "--cursor", "--unit": "--unit-id", "--Sort": "--sort", "--sotr": "--sort", "booking.crated": "booking.created", "--nothing": "", "": "", "booking.": "booking.created booking.updated",
	} {
		if got := strings.Join(similarTo(name, names), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestEachMissingArgumentIsNamed checks the arguments of every command.
func TestEachMissingArgumentIsNamed(t *testing.T) {
	t.Parallel()
	a, _ := newApp()
	walk(a.Root(), func(cmd *cobra.Command) {
		if cmd.HasSubCommands() {
			return
		}
		line := cmd.CommandPath() + strings.TrimPrefix(cmd.Use, cmd.Name())
		if _, name, ok := strings.Cut(cmd.Use, " "); ok && !strings.HasPrefix(name, "[") && !strings.HasPrefix(name, "-") {
			name, _, _ = strings.Cut(name, " ")
			if err := cmd.Args(cmd, nil); err == nil || !strings.HasPrefix(err.Error(), "give the "+name) || !strings.HasSuffix(err.Error(), ": "+line) {
				t.Errorf("%s: %v", line, err)
			}
		} else if err := cmd.Args(cmd, nil); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if err := cmd.Args(cmd, []string{"a", "b", "c"}); err == nil || !strings.Contains(err.Error(), "is one too many: "+line) {
			t.Errorf("%s: %v", line, err)
		}
	})
}
