package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// checkout is a clean working tree of a commit.
type checkout struct {
	root      string
	commit    string
	date      time.Time // of the commit, in UTC
	goVersion string
}

// openCheckout fails if files differ from the commit, or if the tag of the version names another commit.
func openCheckout(ctx context.Context, root, version string) (*checkout, error) {
	c := &checkout{root: root}
	var err error
	if c.commit, err = c.run(ctx, "git", "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	seconds, err := c.run(ctx, "git", "show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return nil, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("date of the commit: %w", err)
	}
	c.date = time.Unix(unix, 0).UTC()
	if changed, err := c.run(ctx, "git", "status", "--porcelain"); err != nil || changed != "" {
		return nil, errors.Join(err, fmt.Errorf("a release is built from a commit: commit or remove the changes that git status shows in %s", root))
	}
	tagged, err := c.run(ctx, "git", "tag", "--list", "--format=%(*objectname)%(objectname)", "v"+version)
	if err == nil && tagged != "" && !strings.HasPrefix(tagged, c.commit) {
		return nil, fmt.Errorf("the tag v%s names another commit than HEAD: check out the tag, or choose another version", version)
	}
	c.goVersion, err = c.run(ctx, "go", "env", "GOVERSION")
	return c, err
}

// run runs a command in the checkout and returns its output without the last line break.
func (c *checkout) run(ctx context.Context, command string, args ...string) (string, error) {
	return c.runIn(ctx, ".", command, args...)
}

// runIn runs a command in a folder of the checkout. Commands read the time of the commit, not the current time. Without paths, checkouts
// share the build cache of Go.
func (c *checkout) runIn(ctx context.Context, folder, command string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir = filepath.Join(c.root, folder)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath", "MAKEFLAGS=", "TZ=UTC")
	if !c.date.IsZero() {
		cmd.Env = append(cmd.Env, "SOURCE_DATE_EPOCH="+strconv.FormatInt(c.date.Unix(), 10))
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(append([]string{command}, args...), " "), err, out, stderr.Bytes())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// services returns the names in proto/services.yaml in their order.
func services(root string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(root, "proto/services.yaml"))
	if err != nil {
		return nil, fmt.Errorf("--root: %w", err)
	}
	var list struct{ Services yaml.Node }
	if err := yaml.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("proto/services.yaml: %w", err)
	}
	var names []string
	for i := 0; i < len(list.Services.Content); i += 2 {
		names = append(names, list.Services.Content[i].Value)
	}
	return names, nil
}
