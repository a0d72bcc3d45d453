package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
)

// books reports whether the job makes a booking: a platform is given, and the client is of the SDK view.
func (j *job) books() bool { return j.view == "sdk" && j.baseURL != "" }

// program writes a program of the folder book into the job's folder.
func (j *job) program(name, as string) error {
	text, err := os.ReadFile(filepath.Join(j.source, "book", name))
	if err != nil {
		return fmt.Errorf("book: %w", err)
	}
	return j.write(as, string(text))
}

// book runs a program that makes a booking with its own Idempotency-Keys.
func (j *job) book(ctx context.Context, name string, args ...string) error {
	env := []string{"BASE_URL=" + j.baseURL, "API_KEY=" + j.apiKey, "KEY=matrix-" + rand.Text()}
	return commandWith(ctx, env, j.folder, name, args...)
}

func (j *job) bookWithGo(ctx context.Context) error {
	if !j.books() {
		return nil
	}
	if err := j.program("book.go.txt", "main.go"); err != nil {
		return err
	}
	return j.book(ctx, "go", "run", ".")
}

func (j *job) bookWithTypeScript(ctx context.Context, program string) error {
	if !j.books() {
		return nil
	}
	if err := j.program(program, "book.ts"); err != nil {
		return err
	}
	if err := command(ctx, j.folder, j.node("tsc"), "-p", "."); err != nil {
		return err
	}
	if err := command(ctx, j.folder, j.node("esbuild"), "book.ts", "--bundle", "--packages=external", "--platform=node", "--format=esm", "--outfile=book.mjs"); err != nil {
		return err
	}
	return j.book(ctx, "node", "book.mjs")
}

func (j *job) bookWithPython(ctx context.Context) error {
	if !j.books() {
		return nil
	}
	if err := j.program("book.py", "book.py"); err != nil {
		return err
	}
	if err := command(ctx, j.folder, j.python("mypy"), "book.py"); err != nil {
		return err
	}
	return j.book(ctx, j.python("python"), "book.py")
}
