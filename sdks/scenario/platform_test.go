package scenario_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// platform is the platform under test.
type platform struct {
	baseURL, key string
	env          map[string]string // of .run/env
	stop         func()
}

// shared is the platform of all tests.
var shared *platform

func TestMain(m *testing.M) {
	code := func() int {
		var err error
		if shared, err = start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer shared.stop()
		return m.Run()
	}()
	os.Exit(code)
}

// start returns the platform of HOLDFAST_BASE_URL and HOLDFAST_API_KEY, or starts one in a temporary folder with the executables of `make build`.
func start() (*platform, error) {
	if address := os.Getenv("HOLDFAST_BASE_URL"); address != "" {
		return &platform{address, os.Getenv("HOLDFAST_API_KEY"), nil, func() {}}, nil
	}
	root, err := os.MkdirTemp("", "holdfast-scenario-")
	if err != nil {
		return nil, err
	}
	if err := copyBinaries(root); err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	up := command(root, "up")
	log := &bytes.Buffer{} // read after the process has ended
	up.Stdout, up.Stderr = log, log
	if err := up.Start(); err != nil {
		return nil, err
	}
	gone := make(chan struct{})
	go func() {
		_ = up.Wait()
		close(gone)
	}()
	stop := func() {
		_ = up.Process.Signal(syscall.SIGINT)
		<-gone
		_ = command(root, "clean").Run()
		_ = os.RemoveAll(root)
	}
	env, err := await(filepath.Join(root, ".run", "env"), gone)
	if err != nil {
		stop()
		return nil, fmt.Errorf("%w\n%s", err, log)
	}
	return &platform{env["BASE_URL"], env["DEMO_TEST_KEY"], env, stop}, nil
}

// copyBinaries copies the executables that a checkout needs to run, because a checkout runs only one platform.
func copyBinaries(root string) error {
	names, err := filepath.Glob("../../bin/*")
	if err != nil || len(names) == 0 {
		return errors.New("no executables: run `make build`")
	}
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o755); err != nil {
		return err
	}
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || info.IsDir() {
			continue
		}
		to := filepath.Join(root, "bin", filepath.Base(name))
		if os.Link(name, to) == nil { // a copy is needed only on another device
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// command returns a command of bin/local in a folder, without the settings of another platform.
func command(root, arg string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(root, "bin", "local"), arg)
	cmd.Dir = root
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"DATABASE_URL", "REDIS_URL", "KAFKA_BROKERS", "GATEWAY_PORT", "HOLDFAST_PREFIX", "LOG"}, name)
	})
	cmd.Env = append(cmd.Env, "KAFKA=embedded")
	return cmd
}

// await waits for the file that the platform writes last, and returns its variables.
func await(path string, gone chan struct{}) (map[string]string, error) {
	limit := time.After(3 * time.Minute)
	for {
		if text, err := os.ReadFile(path); err == nil {
			env := map[string]string{}
			for line := range strings.Lines(string(text)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				env[name] = strings.Trim(value, `'"`)
			}
			return env, nil
		}
		select {
		case <-gone:
			return nil, errors.New("`local up` ended")
		case <-limit:
			return nil, errors.New("`local up` was not ready within 3 minutes")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// setting returns a variable of .run/env, or of the environment if the platform was running before.
func (p *platform) setting(name string) string {
	if value, ok := p.env[name]; ok {
		return value
	}
	return os.Getenv(name)
}

// create creates an object, without an SDK and without the proxy, and returns its ID.
func (p *platform) create(ctx context.Context, t *testing.T, path, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.baseURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+p.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	var object struct{ ID string }
	text, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close(), json.Unmarshal(text, &object)); err != nil || response.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %d %s %v", path, response.StatusCode, text, err)
	}
	return object.ID
}

// list returns the rows of a list, without an SDK and without the proxy.
func (p *platform) list(ctx context.Context, t *testing.T, path string, query url.Values) []map[string]any {
	t.Helper()
	var all []map[string]any
	query.Set("limit", "100")
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.baseURL+path+"?"+query.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+p.key)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s %v", path, response.StatusCode, text, err)
		}
		var page struct {
			Data       []map[string]any `json:"data"`
			NextCursor string           `json:"next_cursor"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Data...)
		if page.NextCursor == "" {
			return all
		}
		query.Set("cursor", page.NextCursor)
	}
}
