// Command matrix generates clients, types, collections and tools from the served contract with generators of other projects, and
// compiles or type-checks the results. `make contract-matrix` runs it. README.md explains the results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	"holdfast.dev/proto/view"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "contract-matrix:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	fast := flag.Bool("fast", false, "run only the tools that need neither a JVM nor much time, with the SDK view")
	only := flag.String("tools", "", "run only these tools, separated by commas")
	views := flag.String("views", "", "only write the served documents to this folder")
	out := flag.String("out", "", "write the generated code to this folder; by default it is deleted")
	venv := flag.String("venv", "", "only install the Python packages of this file of requirements, and print the folder of their programs")
	flag.Parse()
	if *venv != "" {
		return printVenv(ctx, *venv)
	}
	if *views != "" {
		_, err := writeViews(*views)
		return err
	}
	work := *out
	if work == "" {
		temporary, err := os.MkdirTemp("", "contract-matrix-")
		if err != nil {
			return fmt.Errorf("work folder: %w", err)
		}
		defer func() { _ = os.RemoveAll(temporary) }()
		work = temporary
	}
	work, err := filepath.Abs(work)
	if err != nil {
		return fmt.Errorf("work folder: %w", err)
	}
	m, err := newMatrix("matrix", work)
	if err != nil {
		return err
	}
	return m.run(ctx, *fast, strings.FieldsFunc(*only, func(r rune) bool { return r == ',' }))
}

// address is the URL in the documents. Nothing connects to it.
const address = "http://127.0.0.1:8080"

// writeViews writes the served documents, and returns the files of the two views of the API by name.
func writeViews(folder string) (map[string]string, error) {
	documents, err := view.New(proto.OpenAPI, address)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("views: %w", err)
	}
	files := map[string]string{}
	for name, doc := range map[string]*yaml.Node{"full": documents.Contract, "sdk": documents.SDK, "webhooks": documents.Webhooks} {
		text, err := view.JSON(doc)
		if err != nil {
			return nil, err
		}
		files[name] = filepath.Join(folder, "openapi-"+name+".json")
		if err := os.WriteFile(files[name], text, 0o644); err != nil {
			return nil, fmt.Errorf("views: %w", err)
		}
	}
	return files, nil
}

// matrix is one run.
type matrix struct {
	source     string // the folder of this command
	cache      string // the installed tools
	work       string // the generated code
	documents  map[string]string
	exceptions []exception

	baseURL, apiKey string // of a platform, to make bookings on; "" if none is given
}

// newMatrix returns a run whose generated code is written to work. source is the folder of this command.
func newMatrix(source, work string) (*matrix, error) {
	cache, err := cacheFolder()
	if err != nil {
		return nil, err
	}
	if source, err = filepath.Abs(source); err != nil {
		return nil, fmt.Errorf("run it in the folder of proto: %w", err)
	}
	m := &matrix{
		source: source, cache: cache, work: work,
		baseURL: os.Getenv("BASE_URL"), apiKey: os.Getenv("API_KEY"),
	}
	if m.documents, err = writeViews(filepath.Join(work, "views")); err != nil {
		return nil, err
	}
	m.exceptions, err = readExceptions(filepath.Join(source, "exceptions.yaml"))
	return m, err
}

var errFailed = errors.New("not all tools accept the contract")

// run runs the tools one after the other, and prints a line for each tool and view.
func (m *matrix) run(ctx context.Context, fast bool, only []string) error {
	views, failed := []string{"sdk", "full"}, false
	if fast {
		views = views[:1]
	}
	fmt.Printf("%-28s %-9s %-5s %-7s %8s %6s\n", "tool", "version", "view", "result", "lines", "s")
	for _, t := range tools {
		if fast && !t.fast || len(only) > 0 && !slices.Contains(only, t.name) {
			continue
		}
		if missing := t.missing(); missing != "" {
			fmt.Printf("%-28s %-9s %-5s %-7s %s is not installed\n", t.name, t.version, "-", "skipped", missing)
			continue
		}
		for _, v := range views {
			failed = m.try(ctx, t, v) || failed
		}
	}
	if failed {
		return errFailed
	}
	return nil
}

// try runs a tool with a view, prints the result, and reports whether it is a failure.
func (m *matrix) try(ctx context.Context, t tool, v string) bool {
	j := &job{matrix: m, tool: t, view: v, document: m.documents[v], folder: filepath.Join(m.work, t.name, v)}
	err := errors.Join(os.RemoveAll(j.folder), os.MkdirAll(j.folder, 0o755), t.install(ctx, m))
	start := time.Now()
	if err == nil {
		err = t.run(ctx, j)
	}
	result, note := m.judge(t.name, v, err)
	fmt.Printf("%-28s %-9s %-5s %-7s %8d %6.1f\n", t.name, t.version, v, result, j.lines, time.Since(start).Seconds())
	if note != "" {
		fmt.Println(indent(note))
	}
	return result == "FAIL"
}

// judge compares the result of a tool with the exceptions.
func (m *matrix) judge(name, v string, err error) (result, note string) {
	i := slices.IndexFunc(m.exceptions, func(e exception) bool { return e.Tool == name && slices.Contains(e.Views, v) })
	switch {
	case err == nil && i >= 0:
		return "FAIL", "it works now: remove the exception from exceptions.yaml"
	case err == nil:
		return "ok", ""
	case i >= 0 && strings.Contains(err.Error(), m.exceptions[i].Error):
		return "known", m.exceptions[i].Bug
	default:
		return "FAIL", err.Error()
	}
}

func indent(text string) string {
	const longest = 4000
	if len(text) > longest {
		text = text[:longest/2] + "\n…\n" + text[len(text)-longest/2:]
	}
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// exception is a tool that fails because of its own bug.
type exception struct {
	Tool  string   `yaml:"tool"`
	Views []string `yaml:"views"`
	Error string   `yaml:"error"` // part of what the tool prints
	Bug   string   `yaml:"bug"`   // what is wrong with the tool, and its issue
}

func readExceptions(path string) ([]exception, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("exceptions: %w", err)
	}
	var file struct {
		Exceptions []exception `yaml:"exceptions"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("exceptions: %w", err)
	}
	for _, e := range file.Exceptions {
		if e.Tool == "" || len(e.Views) == 0 || e.Error == "" || e.Bug == "" {
			return nil, fmt.Errorf("exceptions: %+v lacks a field", e)
		}
	}
	return file.Exceptions, nil
}
