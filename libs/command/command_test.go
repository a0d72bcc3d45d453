package command_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/command"
)

var errWork = errors.New("the work failed")

// tree is a program with a group of commands and one whose work fails.
func tree(out *bytes.Buffer) *cobra.Command {
	root := &cobra.Command{Use: "tool", Short: "A tool."}
	group := &cobra.Command{Use: "group", Short: "A group."}
	work := &cobra.Command{
		Use: "work NAME", Short: "Work.", Args: cobra.ExactArgs(1),
		RunE: func(*cobra.Command, []string) error { return errWork },
	}
	work.Flags().String("needed", "", "a flag")
	_ = work.MarkFlagRequired("needed")
	group.AddCommand(work)
	root.AddCommand(group)
	root.SetOut(out)
	return root
}

func execute(args ...string) (string, error) {
	var out bytes.Buffer
	root := tree(&out)
	root.SetArgs(args)
	err := command.Execute(context.Background(), root)
	return out.String(), err
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"": "group       A group.", "group": "work        Work.", "--help": "A tool.", "--version": "tool version " + command.Version(), "group work --help": "tool group work NAME",
	} {
		out, err := execute(strings.Fields(args)...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	if v := command.Version(); !strings.Contains(v, "commit ") || !strings.Contains(v, "go1.") {
		t.Errorf("version %q", v)
	}
}

// A usage error is printed with the command's usage. An error of the command itself is not.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][2]string{
		"nonsense":             {`unknown command "nonsense"`, "tool [command]"},
		"group nonsense":       {`unknown command "nonsense" for "tool group"`, "tool group [command]"},
		"--nonsense":           {"unknown flag: --nonsense", "tool [command]"},
		"group work":           {"accepts 1 arg(s)", "tool group work NAME"},
		"group work a":         {`required flag(s) "needed"`, "tool group work NAME"},
		"group work --other a": {"unknown flag: --other", "tool group work NAME"},
	} {
		out, err := execute(strings.Fields(args)...)
		var usage *command.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want[0]) || strings.Contains(err.Error(), "\n") || !strings.Contains(usage.Usage, want[1]) || out != "" {
			t.Errorf("%q: %v\n%+v\n%s", args, err, usage, out)
		}
	}
	_, err := execute("group", "work", "a", "--needed", "b")
	var usage *command.UsageError
	if !errors.Is(err, errWork) || errors.As(err, &usage) {
		t.Errorf("an error of the work: %v", err)
	}
}
