package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const repository = "../../.."

func TestFilesAreCurrent(t *testing.T) {
	t.Parallel()
	for path, write := range files {
		want, err := write(repository)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is stale: run make gen and commit", path)
		}
	}
}

// TestNames checks that the chart accepts the settings that a service reads itself, with other services, and for its commands, and the
// files of secret ones. It does not accept settings of other services.
func TestNames(t *testing.T) {
	t.Parallel()
	s := newSource(repository)
	for service, has := range map[string]map[string]bool{
		"identity": {"MAIL_URL_FILE": true, "MAIL_FROM": true, "MAIL_FROM_FILE": false, "DATABASE_MAX_CONNS": true, "LOG_LEVEL": true, "STRIPE_URL": false},
		"payments": {"STRIPE_URL": true, "DATABASE_URL_FILE": true, "RATE_LIMIT_PER_MINUTE": false},
		"gateway":  {"REDIS_URL": true, "DATABASE_MAX_CONNS": false, "STOP_DELAY": true, "UPSTREAM_URL": true},
	} {
		names, err := s.names(service)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range has {
			if slices.Contains(names, name) != want {
				t.Errorf("%s has %s: %v", service, name, !want)
			}
		}
	}
}

// The page contains each kind of row in the section of its service.
func TestRows(t *testing.T) {
	t.Parallel()
	text, err := page(repository)
	if err != nil {
		t.Fatal(err)
	}
	for section, rows := range map[string][]string{
		"Every process":            {"| `STOP_TIMEOUT` | duration | `15s` |  |  |"},
		"Services with a database": {"| `CALLER_VERIFY_KEYS` | string |  | yes | reloaded |", "| `DATABASE_URL` | string |  | yes | reloaded |", "| `KAFKA_BROKERS` | comma-separated list |  | yes |  |", "| `DATABASE_MAX_CONNS` | number | `16` |  |  |"},
		"The migrate command":      {"| `APP_ROLE` | string |  | yes |  |"},
		"The reseal command":       {"| `SERVICE_ENCRYPTION_KEYS` | string |  | yes | yes |"},
		"identity":                 {"(the default of `DATABASE_MAX_CONNS` is 10):", "| `PASSWORDS_AT_ONCE` | number | `2` |  |  |", "| `REDIS_SENTINEL_PASSWORD` | string |  |  | yes |"},
		"webhooks":                 {"(the default of `WORKER_DATABASE_MAX_CONNS` is 16):", `| \<kid>:\<hex>,…; the first key signs |`},
		"gateway":                  {"In addition to the settings of [every process](#every-process):", "| `REDIS_TIMEOUT` | duration | `100ms` |  |  |"},
	} {
		_, part, found := strings.Cut(text, "\n## "+section+"\n")
		part, _, _ = strings.Cut(part, "\n## ")
		for _, row := range rows {
			if !found || !strings.Contains(part, row) {
				t.Errorf("the section %s lacks %s\n%s", section, row, part)
			}
		}
	}
}

// No section has two tables with the same rows, and no text of the page is a comment of the code.
func TestTables(t *testing.T) {
	t.Parallel()
	text, err := page(repository)
	if err != nil {
		t.Fatal(err)
	}
	for section := range strings.SplitSeq(text, "\n## ") {
		seen := map[string]bool{}
		for _, part := range strings.Split(section, "|---|---|---|---|---|---|\n")[1:] {
			rows, _, _ := strings.Cut(part, "\n\n")
			if seen[strings.TrimSpace(rows)] {
				t.Errorf("the same table twice:\n%s", rows)
			}
			seen[strings.TrimSpace(rows)] = true
		}
	}
	for _, comment := range []string{"contains the settings", "One running command", "toolConfig", "clientConfig"} {
		if strings.Contains(text, comment) {
			t.Errorf("the page shows a comment of the code: %s", comment)
		}
	}
}

// A command whose settings are not introduced fails the generator.
func TestSettingsOfAnUnknownCommand(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "services", "x")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	code := "package main\n\ntype Config struct {\n\tA int `env:\"A\"` // one\n}\n\ntype other struct {\n\tB int `env:\"B\"` // two\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "config.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newSource(root).service(&strings.Builder{}, "x", Struct{}); err == nil || !strings.Contains(err.Error(), "x.other has settings") {
		t.Errorf("got %v", err)
	}
}

// A setting of a type that has no name, or without a comment, fails the generator.
func TestSettingsThatCannotBeShown(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "services", "x")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{
		"Weight complex128 `env:\"WEIGHT\"` // in kilograms": "WEIGHT has the type complex128",
		"Weight int `env:\"WEIGHT\"`":                        "WEIGHT has no comment",
	} {
		code := "package main\n\ntype Config struct {\n\t" + field + "\n}\n"
		if err := os.WriteFile(filepath.Join(dir, "config.go"), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := newSource(root).structs(module + "services/x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", field, err)
		}
	}
	if _, err := page(root); err == nil || !strings.Contains(err.Error(), "give the root of the repository") {
		t.Errorf("elsewhere: %v", err)
	}
}
