package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/sdks/generate/model"
)

// TestTheCommandLineIsFresh checks that the committed table of operations is the one that the contract and VERSION give.
func TestTheCommandLineIsFresh(t *testing.T) {
	t.Parallel()
	m, err := model.Read()
	if err != nil {
		t.Fatal(err)
	}
	version, err := os.ReadFile("../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	files, err := cli(m, strings.TrimSpace(string(version)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join("../cli", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run make gen (%v)", name, err)
		}
	}
}
