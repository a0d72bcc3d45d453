package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const repository = "../../.."

func TestPageIsCurrent(t *testing.T) {
	t.Parallel()
	want, err := page(repository)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(repository, "docs", "settings.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/settings.md is stale: run make gen and commit")
	}
}

// The page has each kind of row in the section of its service.
func TestRows(t *testing.T) {
	t.Parallel()
	text, err := page(repository)
	if err != nil {
		t.Fatal(err)
	}
	for section, rows := range map[string][]string{
		"Every process":            {"| `HTTP_READ_TIMEOUT` | duration | `30s` |  |  |"},
		"Services with a database": {"| `CALLER_VERIFY_KEYS` | text |  | yes | yes |", "| `KAFKA_BROKERS` | list, by comma |  | yes |  |", "| `DATABASE_MAX_CONNS` | number | `16` |  |  |"},
		"The command migrate":      {"| `APP_ROLE` | text |  | yes |  |"},
		"The command reseal":       {"| `SERVICE_ENCRYPTION_KEYS` | text |  | yes | yes |"},
		"identity":                 {"`DATABASE_MAX_CONNS` is 10:", "| `REDIS_TIMEOUT` | duration | `1s` |  |  |", "| `REDIS_SENTINEL_PASSWORD` | text |  |  | yes |"},
		"webhooks":                 {"`WORKER_DATABASE_MAX_CONNS` is 16:", `| \<kid>:\<hex>,…: the first signs |`},
		"gateway":                  {"Beside those of [every process](#every-process):", "| `REDIS_TIMEOUT` | duration | `15ms` |  |  |"},
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

// A setting of a type that has no word, or without a comment, fails the generator.
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
