package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// longest is the maximum duration of one command.
const longest = 15 * time.Minute

// job is one tool with one view.
type job struct {
	*matrix

	tool     tool
	view     string
	document string // the file of the view
	folder   string // for the generated code
	lines    int    // of the generated code
}

// command runs a command in a folder. The error contains what it printed.
func command(ctx context.Context, folder, name string, args ...string) error {
	return commandWith(ctx, nil, folder, name, args...)
}

// commandWith is command with more environment variables.
func commandWith(ctx context.Context, env []string, folder, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	cmd.Env = append(append(os.Environ(), env...), "GOWORK=off", "GOFLAGS=-mod=mod", "NO_COLOR=1", "npm_config_loglevel=error", "CARGO_TERM_COLOR=never")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, out.String())
	}
	return nil
}

// generate runs a command in the job's folder, and counts the lines of the files that it wrote with one of the extensions.
func (j *job) generate(ctx context.Context, extensions []string, name string, args ...string) error {
	if err := command(ctx, j.folder, name, args...); err != nil {
		return err
	}
	return j.count(extensions...)
}

// count counts the lines of the job's files with one of the extensions.
func (j *job) count(extensions ...string) error {
	j.lines = 0
	err := filepath.WalkDir(j.folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() || !slices.Contains(extensions, filepath.Ext(path)) {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // generated
		j.lines += bytes.Count(text, []byte{'\n'})
		return err
	})
	if err == nil && j.lines == 0 {
		return fmt.Errorf("%s wrote no lines", j.tool.name)
	}
	return err
}

// write writes a file into the job's folder.
func (j *job) write(name, text string) error {
	path := filepath.Join(j.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // anybody may read it
}

// node returns the path of an installed JavaScript tool, and python that of an installed Python tool.
func (m *matrix) node(name string) string {
	return filepath.Join(m.npm(), "node_modules", ".bin", name)
}

func (m *matrix) python(name string) string { return filepath.Join(m.venv(), "bin", name) }

// goModule compiles generated Go code, which needs these modules.
func (j *job) goModule(ctx context.Context, requires ...string) error {
	text := "module example.com/client\n\ngo 1.26\n"
	for _, r := range requires {
		text += "\nrequire " + r + "\n"
	}
	if err := j.write("go.mod", text); err != nil {
		return err
	}
	if err := command(ctx, j.folder, "go", "mod", "tidy"); err != nil {
		return err
	}
	return command(ctx, j.folder, "go", "build", "-p", "2", "./...")
}

// tsconfig is as strict as the project of a careful user.
const tsconfig = `{"compilerOptions": {"strict": true, "noEmit": true, "target": "es2022", "module": "esnext", "moduleResolution": "bundler",
"lib": ["es2022", "dom", "dom.iterable"], "skipLibCheck": true, "types": ["node"]}, "include": ["**/*.ts"], "exclude": ["node_modules"]}
`

// typeScript type-checks generated TypeScript.
func (j *job) typeScript(ctx context.Context) error {
	if err := j.write("tsconfig.json", tsconfig); err != nil {
		return err
	}
	link := filepath.Join(j.folder, "node_modules")
	if err := os.Symlink(filepath.Join(j.npm(), "node_modules"), link); err != nil && !os.IsExist(err) {
		return fmt.Errorf("node_modules: %w", err)
	}
	return command(ctx, j.folder, j.node("tsc"), "-p", ".")
}
