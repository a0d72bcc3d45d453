// Command generate writes what is derived from the public contract: api/openapi.yaml, the whole document that is served
// and that other tools read, eventtypes.gen.go, fields.gen.go and the event types of docs/guides/webhooks.md. `make gen` runs it in the folder proto.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	source, err := os.ReadFile("openapi.yaml")
	if err != nil {
		return fmt.Errorf("run it in the folder of proto: %w", err)
	}
	examples, err := readExamples(os.DirFS("examples"))
	if err != nil {
		return err
	}
	whole, err := expand(source, examples)
	if err != nil {
		return err
	}
	types, err := eventTypes(source)
	if err != nil {
		return err
	}
	names, err := fields(source)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile("api/openapi.yaml", whole, 0o644),
		os.WriteFile("eventtypes.gen.go", types, 0o644),
		os.WriteFile("fields.gen.go", names, 0o644),
		writeOrdered(whole),
		writeEventTypes(source),
	)
}
