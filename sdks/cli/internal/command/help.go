package command

import (
	"bytes"
	"io"
	"regexp"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
)

// The widths of the help in columns.
const (
	helpWidth    = 100 // if the output is not a terminal
	narrowestCol = 20  // a description that would have less space begins in a line of its own
	helpIndent   = 8   // of such a line
)

// wrapHelp makes a command and those below it wrap their help to the width of the terminal.
func (a *App) wrapHelp(root *cobra.Command) {
	write := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		var text bytes.Buffer
		cmd.SetOut(&text)
		write(cmd, args)
		cmd.SetOut(a.Out)
		width := a.Out.Width
		if width == 0 {
			width = helpWidth
		}
		_, _ = io.WriteString(a.Out, wrap(text.String(), width)) // a closed terminal does not stop the command
	})
}

// columnStart is the beginning of a line with a name and its description, which starts after two or more spaces.
var columnStart = regexp.MustCompile(`^\s*\S.*?\s{2,}`)

// wrap breaks lines that are wider than width between words. The rest of a line begins below its description, or below its first word.
func wrap(text string, width int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if runewidth.StringWidth(line) <= width {
			out.WriteString(strings.TrimRight(line, " ") + "\n")
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if head := columnStart.FindString(line); head != "" {
			if indent = runewidth.StringWidth(head); indent > width-narrowestCol {
				out.WriteString(strings.TrimRight(head, " ") + "\n")
				line, indent = strings.Repeat(" ", helpIndent)+line[len(head):], helpIndent
			}
		}
		out.WriteString(wrapLine(line, indent, width))
	}
	return out.String()
}

// wrapLine breaks a line. Further lines have an indent.
func wrapLine(line string, indent, width int) string {
	var out strings.Builder
	for runewidth.StringWidth(line) > width {
		cut := -1
		for i, r := range line { // the last space that leaves a line of the width, or else the first one after it
			if r == ' ' && strings.TrimSpace(line[:i]) != "" && (cut < 0 || runewidth.StringWidth(line[:i]) <= width) && i >= indent {
				cut = i
			}
		}
		if cut < 0 {
			break
		}
		out.WriteString(strings.TrimRight(line[:cut], " ") + "\n")
		line = strings.Repeat(" ", indent) + strings.TrimLeft(line[cut:], " ")
	}
	return out.String() + line + "\n"
}
