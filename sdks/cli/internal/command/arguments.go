package command

import (
	"strings"

	"github.com/spf13/cobra"
)

// arguments returns the check of a command's arguments, whose names follow from its Use: "get ID" or "open [ID]".
func arguments(cmd *cobra.Command) cobra.PositionalArgs {
	var names []string
	required := 0
	parts := strings.Fields(cmd.Use)[1:]
	for i := 0; i < len(parts); i++ {
		if strings.HasPrefix(parts[i], "-") { // a flag and its value
			i++
			continue
		}
		names = append(names, strings.Trim(parts[i], "[]"))
		if !strings.HasPrefix(parts[i], "[") {
			required++
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		line := strings.Join(append([]string{cmd.CommandPath()}, strings.Fields(cmd.Use)[1:]...), " ")
		switch {
		case len(args) < required:
			return usagef("give the %s: %s", strings.Join(names[len(args):required], " and the "), line)
		case len(args) > len(names):
			return usagef("the argument %q is one too many: %s", args[len(names)], line)
		}
		return nil
	}
}
