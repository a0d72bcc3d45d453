package failpoint_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A build with the tag crashes at the step that the environment names, at the given pass. A build without the tag does not, and
// contains neither the names of the steps nor that of the variable.
func TestBuildWithTheTagCrashes(t *testing.T) {
	t.Parallel()
	tagged, plain := build(t, "-tags", "failpoints"), build(t)
	for _, tc := range []struct {
		program, setting, printed string
		killed                    bool
	}{
		{tagged, "", "0\n1\n2\n", false},
		{tagged, "step.unknown", "0\n1\n2\n", false},
		{tagged, "step.written", "", true},
		{tagged, "step.written:3", "0\n1\n", true},
		{tagged, "step.written:4", "0\n1\n2\n", false},
		{tagged, "step.committed", "0\n1\n2\n", true},
		{plain, "step.written", "0\n1\n2\n", false},
	} {
		cmd := exec.Command(tc.program)
		cmd.Env = append(os.Environ(), "FAILPOINT="+tc.setting)
		out, err := cmd.Output()
		var exit *exec.ExitError
		killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
		if string(out) != tc.printed || killed != tc.killed || (err != nil) != tc.killed {
			t.Errorf("%s with %q: printed %q, %v", filepath.Base(tc.program), tc.setting, out, err)
		}
	}
	for _, word := range []string{"step.written", "FAILPOINT"} {
		if !holds(t, tagged, word) || holds(t, plain, word) {
			t.Errorf("%s: in the tagged build %v, in the plain one %v", word, holds(t, tagged, word), holds(t, plain, word))
		}
	}
}

func build(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "passes")
	out, err := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), "./testdata/passes")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

func holds(t *testing.T, program, word string) bool {
	t.Helper()
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(b, []byte(word))
}
