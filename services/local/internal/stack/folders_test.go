package stack

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDataOfADeletedCheckoutIsSetAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, state := filepath.Join(dir, "data"), filepath.Join(dir, "state.json")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	try := func(want, content string) {
		t.Helper()
		got, err := setAside(data, state)
		if err != nil || got != want {
			t.Fatalf("set aside in %q, %v; want %q", got, err, want)
		}
		if text, err := os.ReadFile(filepath.Join(data+asideSuffix, "rows")); string(text) != content {
			t.Errorf("aside are %q, %v; want %q", text, err, content)
		}
	}
	try("", "") // nothing there
	for _, text := range []string{"first", "second"} {
		write(filepath.Join(data, "rows"), text)
		try(data+asideSuffix, text)
	}
	write(filepath.Join(data, "rows"), "own")
	write(state, "{}")
	try("", "second") // the checkout's own data stays
	if text, err := os.ReadFile(filepath.Join(data, "rows")); string(text) != "own" {
		t.Errorf("%q, %v", text, err)
	}
}
