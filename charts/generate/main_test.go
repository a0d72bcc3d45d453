package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestGeneratedFilesAreFresh(t *testing.T) {
	t.Parallel()
	all, err := files("../..")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range all {
		if got, err := os.ReadFile(filepath.Join("../..", path)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run make gen and commit (%v)", path, err)
		}
	}
}
