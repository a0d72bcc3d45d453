package proto_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestFastTools checks that the fast tools of the contract matrix accept the contract, and that their output compiles.
func TestFastTools(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "../.ci/matrix", "--fast").CombinedOutput()
	if err != nil || strings.Count(string(out), " ok ") != 5 {
		t.Errorf("%v\n%s", err, out)
	}
}
