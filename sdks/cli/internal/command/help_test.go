package command

import (
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
)

// TestHelpFitsTheTerminal checks that no line of any help is wider than the terminal, except for a single word, and that no word is lost.
func TestHelpFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []int{50, 80, 0} {
		a, out := newApp()
		a.Out.Width = width
		limit := width
		if width == 0 {
			limit = helpWidth
		}
		root := a.Root()
		walk(root, func(cmd *cobra.Command) {
			out.Reset()
			if err := cmd.Help(); err != nil {
				t.Fatal(err)
			}
			text := out.String()
			for line := range strings.Lines(text) {
				if line = strings.TrimRight(line, "\n"); runewidth.StringWidth(line) > limit && strings.Contains(strings.TrimSpace(line), " ") {
					t.Errorf("%s at %d: %q", cmd.CommandPath(), width, line)
				}
			}
			out.Reset()
			a.Out.Width = 1 << 20
			_ = cmd.Help()
			a.Out.Width = width
			if got, want := strings.Fields(text), strings.Fields(out.String()); strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s at %d: the words differ", cmd.CommandPath(), width)
			}
		})
	}
}

// TestWrap checks that the rest of a description begins below it.
func TestWrap(t *testing.T) {
	t.Parallel()
	const text = "  --limit int     Maximum number of rows on the page.\n\nOne two three four five six seven eight nine.\n  --a-very-long-name-of-a-flag string   What it does, in words.\n"
	const want = "  --limit int     Maximum number of rows\n                  on the page.\n\nOne two three four five six seven eight\nnine.\n  --a-very-long-name-of-a-flag string\n        What it does, in words.\n"
	if got := wrap(text, 40); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
