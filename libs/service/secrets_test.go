package service

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"holdfast.dev/libs/secret"
)

type secretConfig struct {
	Key   secret.Setting `env:"TEST_SECRET_KEY,required,notEmpty" secret:"true"`
	URL   secret.Setting `env:"TEST_SECRET_URL" secret:"url"`
	Once  string         `env:"TEST_SECRET_ONCE" secret:"true"`
	Plain string         `env:"TEST_SECRET_PLAIN"`
}

// write replaces a file in one step, so that a process that reads it in between does not find it empty.
func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSecretsFromFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TEST_SECRET_KEY_FILE", write(t, filepath.Join(dir, "key"), "1\n"))
	t.Setenv("TEST_SECRET_URL", "postgres://me:hunter2@h/db")
	t.Setenv("TEST_SECRET_ONCE_FILE", write(t, filepath.Join(dir, "once"), "a value"))
	t.Setenv("TEST_SECRET_PLAIN_FILE", "/nowhere")
	var cfg secretConfig
	if err := Load(&cfg); err != nil {
		t.Fatal(err)
	}
	if cfg.Key.Get() != "1" || cfg.Key.Name() != "TEST_SECRET_KEY" || cfg.URL.Name() != "" || cfg.Once != "a value" || cfg.Plain != "" {
		t.Errorf("%q %q %q %q", cfg.Key.Get(), cfg.Key.Name(), cfg.Once, cfg.Plain)
	}
	got := Describe(&cfg).String()
	if want := "[TEST_SECRET_KEY=*** TEST_SECRET_URL=postgres://me:xxxxx@h/db TEST_SECRET_ONCE=*** TEST_SECRET_PLAIN=]"; got != want {
		t.Errorf("the start line has %s, want %s", got, want)
	}
	t.Setenv("TEST_SECRET_URL", "host=h password=hunter2")
	if err := Load(&cfg); err != nil || strings.Contains(Describe(&cfg).String(), "hunter2") {
		t.Errorf("the start line has %s, %v", Describe(&cfg), err)
	}
}

// An error names the setting and what is allowed, and never shows a value.
func TestSecretsThatCannotBeLoaded(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		key, file string
		want      string
	}{
		"neither": {"", "", `"TEST_SECRET_KEY" or "TEST_SECRET_KEY_FILE" is not set`},
		"both":    {"hunter2", write(t, filepath.Join(dir, "key"), "hunter2"), "TEST_SECRET_KEY and TEST_SECRET_KEY_FILE are both set: set only one of them"},
		"no file": {"", filepath.Join(dir, "none"), "TEST_SECRET_KEY_FILE: open "},
		"empty":   {"", write(t, filepath.Join(dir, "empty"), "\n"), "TEST_SECRET_KEY_FILE: the file is empty"},
		"large":   {"", write(t, filepath.Join(dir, "large"), strings.Repeat("x", secret.MaxBytes+1)), "TEST_SECRET_KEY_FILE: the file is larger than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if t.Setenv("TEST_SECRET_KEY", tc.key); tc.key == "" {
				_ = os.Unsetenv("TEST_SECRET_KEY")
			}
			t.Setenv("TEST_SECRET_KEY_FILE", tc.file)
			var cfg secretConfig
			if err := Load(&cfg); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// A running process switches to a new value without a restart. It keeps the old one while the file is not usable.
func TestProcessReloadsSecrets(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "key"), "1")
	t.Setenv("TEST_SECRET_KEY_FILE", file)
	t.Setenv("SECRET_RELOAD_INTERVAL", "100ms")
	var cfg secretConfig
	var number func() int
	started := make(chan *Runtime, 1)
	app := App{Name: "x", Config: &cfg, Serve: func(_ context.Context, rt *Runtime) (err error) {
		number, err = secret.Follow(cfg.Key, strconv.Atoi)
		started <- rt
		return err
	}}
	ctx, stop := context.WithCancel(t.Context())
	var log safeBuffer
	done := make(chan error, 1)
	go func() { done <- Run(ctx, app, []string{"serve"}, &log) }()
	rt := <-started
	invalid := func() float64 { return metric(t, rt, "secret_file_invalid") }
	write(t, file, "two")
	eventually(t, "the file is invalid", func() bool { return invalid() == 1 })
	if number() != 1 {
		t.Errorf("switched to a value that is not valid: %d", number())
	}
	write(t, file, "3")
	eventually(t, "the new value", func() bool { return number() == 3 && invalid() == 0 && metric(t, rt, "secret_reloads_total") == 1 })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "not reloaded"); n != 1 || !strings.Contains(log.String(), "TEST_SECRET_KEY") {
		t.Errorf("%d lines about an invalid file\n%s", n, log.String())
	}
}

// metric returns the value of the metric for TEST_SECRET_KEY.
func metric(t *testing.T, rt *Runtime, name string) float64 {
	t.Helper()
	families, err := rt.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return -1
}

func TestReloadIntervalIsBounded(t *testing.T) {
	t.Setenv("TEST_SECRET_KEY", "1")
	for _, interval := range []string{"99ms", "61s", "0s"} {
		t.Setenv("SECRET_RELOAD_INTERVAL", interval)
		err := Run(t.Context(), App{Name: "x", Config: &secretConfig{}}, []string{"serve"}, &safeBuffer{})
		if err == nil || !strings.Contains(err.Error(), "SECRET_RELOAD_INTERVAL must be from 100ms to 1m0s") {
			t.Errorf("%s: %v", interval, err)
		}
	}
}
