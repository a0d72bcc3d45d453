package main

import (
	"os/exec"
	"strings"
	"testing"

	"holdfast.dev/libs/archtest"
)

func TestLayers(t *testing.T) {
	t.Parallel()
	archtest.Check(t, archtest.HTTPInVerbs)
}

// The gateway has no database, so it links no driver of one.
func TestNoDriverIsLinked(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(out)) {
		for _, driver := range []string{"github.com/jackc/", "otelpgx"} {
			if strings.Contains(name, driver) {
				t.Errorf("the gateway links %s", name)
			}
		}
	}
}
