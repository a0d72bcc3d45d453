package charts_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// secrets returns the Secrets that `identity keys init` creates for the release holdfast, as YAML.
var secrets = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "identity")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "identity")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-w", "-o", path, ".")
	build.Dir = "../services/identity"
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	out, err := exec.Command(path, "keys", "init", "--yaml", "--postgres-url", "postgres://postgres.test/", "--redis-url", "redis://redis.test").Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return string(out), err
})

// created returns the keys of each Secret that the command creates.
func created(t *testing.T) map[string][]string {
	t.Helper()
	text, err := secrets()
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string][]string{}
	for _, o := range objects(t, text) {
		for key := range o.StringData {
			keys[o.Metadata.Name] = append(keys[o.Metadata.Name], key)
		}
	}
	return keys
}

// TestKubernetesAcceptsSecrets checks that each release of Kubernetes accepts the Secrets that `identity keys init` creates.
func TestKubernetesAcceptsSecrets(t *testing.T) {
	t.Parallel()
	keys := created(t)
	text, _ := secrets()
	file := filepath.Join(t.TempDir(), "secrets.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, release := range releases {
		if out, err := conform(t, release, file); err != nil || !strings.Contains(out, fmt.Sprintf("Valid: %d, Invalid: 0, Errors: 0, Skipped: 0", len(keys))) {
			t.Errorf("%s: %v\n%s", release, err, out)
		}
	}
}
