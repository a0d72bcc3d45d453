// Command generate writes the parts of the SDKs that follow from the contract: the methods of the resources, the classes of errors and
// the table of event types. It also writes the table of operations of the command line. With -views, it only writes the documents that the
// generators of the types read, and with -collections, only the requests for Postman and Bruno. `make gen` runs it in this folder.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	"holdfast.dev/proto/view"
	"holdfast.dev/sdks/generate/model"
)

// emitter returns the generated files of a language by path, relative to the folder of its SDK.
type emitter func(m *model.Model, version string) (map[string][]byte, error)

// emitters are the emitters by folder.
var emitters = map[string]emitter{
	"cli":        cli,
	"go":         golang,
	"python":     python,
	"typescript": typeScript,
}

func main() {
	views := flag.String("views", "", "only write the documents for generators of types to this folder")
	served := flag.String("address", address, "the URL in these documents")
	requests := flag.String("collections", "", "only write the collections to this folder")
	flag.Parse()
	if err := run(*views, *served, *requests); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(views, served, requests string) error {
	if views != "" {
		return writeViews(views, served)
	}
	m, err := model.Read()
	if err != nil {
		return err
	}
	if requests != "" {
		return writeCollections(m, requests)
	}
	version, err := os.ReadFile("../VERSION")
	if err != nil {
		return fmt.Errorf("run it in the folder sdks/generate: %w", err)
	}
	for folder, emit := range emitters {
		files, err := emit(m, strings.TrimSpace(string(version)))
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		if err := write(filepath.Join("..", folder), files); err != nil {
			return err
		}
	}
	return nil
}

// write writes files below a folder, and creates their folders.
func write(folder string, files map[string][]byte) error {
	for path, text := range files {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// address is the URL in the documents. The generators of types do not use it.
const address = "https://holdfast.invalid"

// writeViews writes openapi-full.json and openapi-sdk.json, the served contract and its view for generators of clients;
// openapi-webhooks.json, the requests of deliveries; and openapi-go.json, the schemas of the Go SDK.
func writeViews(folder, address string) error {
	served, err := view.New(proto.OpenAPI, address)
	if err != nil {
		return err
	}
	forGo, err := goSchemas()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("views: %w", err)
	}
	var failed []error
	for name, doc := range map[string]*yaml.Node{"full": served.Contract, "sdk": served.SDK, "webhooks": served.Webhooks, "go": forGo} {
		text, err := view.JSON(doc)
		failed = append(failed, err, os.WriteFile(filepath.Join(folder, "openapi-"+name+".json"), text, 0o644))
	}
	return errors.Join(failed...)
}
