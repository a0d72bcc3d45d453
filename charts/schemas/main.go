// Command schemas converts what Kubernetes and operators publish into JSON schemas for kubeconform, so that the tests of the chart
// need no network: `schemas IN OUT` reads IN/<version>.json, the OpenAPI documents of Kubernetes releases, and IN/*.yaml,
// definitions of custom resources. It writes OUT/v<version>.0/<kind>-<group>-<version>.json and OUT/crds/…. Unknown fields are
// errors. .ci/kubernetes-schemas downloads the input.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: schemas IN OUT")
		os.Exit(2)
	}
	if err := convert(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func convert(in, out string) error {
	releases, err := filepath.Glob(filepath.Join(in, "*.json"))
	if err != nil {
		return err
	}
	for _, file := range releases {
		version := strings.TrimSuffix(filepath.Base(file), ".json")
		if err := release(file, filepath.Join(out, "v"+version+".0")); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	resources, err := filepath.Glob(filepath.Join(in, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range resources {
		if err := customResources(file, filepath.Join(out, "crds")); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// schema is a JSON schema, or one of its maps.
type schema = map[string]any

const definitionsPath = "#/definitions/"

// release writes one file for each kind of a Kubernetes release. It contains the definitions that the kind refers to.
func release(file, dir string) error {
	text, err := os.ReadFile(file) //nolint:gosec // the folder is an argument
	if err != nil {
		return err
	}
	var document struct {
		Definitions map[string]schema `json:"definitions"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return err
	}
	for name, d := range document.Definitions {
		switch {
		case strings.HasSuffix(name, ".intstr.IntOrString"), strings.HasSuffix(name, ".resource.Quantity"):
			document.Definitions[name] = schema{"type": []string{"string", "number"}}
		default:
			strict(d)
		}
	}
	for name, d := range document.Definitions {
		kinds, _ := d["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 { // several: an argument of many APIs, such as DeleteOptions
			continue
		}
		gvk, _ := kinds[0].(schema)
		used := schema{}
		collect(document.Definitions, name, used)
		root := schema{"$ref": definitionsPath + name, "definitions": used}
		if err := write(dir, fmt.Sprint(gvk["kind"]), fmt.Sprint(gvk["group"]), fmt.Sprint(gvk["version"]), root); err != nil {
			return err
		}
	}
	return nil
}

// collect adds to used the definition of that name, and those that it refers to.
func collect(all map[string]schema, name string, used schema) {
	if _, seen := used[name]; seen {
		return
	}
	used[name] = all[name]
	walk(all[name], func(s schema) {
		if ref, ok := s["$ref"].(string); ok {
			collect(all, strings.TrimPrefix(ref, definitionsPath), used)
		}
	})
}

// strict rejects unknown fields, accepts numbers where Kubernetes does, and removes what only people read.
func strict(root schema) {
	walk(root, func(s schema) {
		if _, ok := s["description"].(string); ok {
			delete(s, "description")
		}
		if s["x-kubernetes-int-or-string"] == true {
			delete(s, "anyOf")
			s["type"] = []string{"string", "number"}
		}
		_, fields := s["properties"].(schema)
		_, open := s["additionalProperties"]
		if fields && !open && s["x-kubernetes-preserve-unknown-fields"] != true {
			s["additionalProperties"] = false
		}
	})
}

// walk calls visit for each map in v, the outer ones first.
func walk(v any, visit func(schema)) {
	switch v := v.(type) {
	case schema:
		visit(v)
		for _, inner := range v {
			walk(inner, visit)
		}
	case []any:
		for _, inner := range v {
			walk(inner, visit)
		}
	}
}

// customResources writes one file for each version of the custom resources that a file defines.
func customResources(file, dir string) error {
	input, err := os.Open(file) //nolint:gosec // as above
	if err != nil {
		return err
	}
	defer input.Close()
	for dec := yaml.NewDecoder(input); ; {
		var definition struct {
			Spec struct {
				Group    string
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct {
						OpenAPIV3Schema schema `yaml:"openAPIV3Schema"`
					}
				}
			}
		}
		if err := dec.Decode(&definition); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for _, version := range definition.Spec.Versions {
			root := version.Schema.OpenAPIV3Schema
			strict(root)
			if fields, ok := root["properties"].(schema); ok { // some definitions omit what every object has
				for name, kind := range map[string]string{"apiVersion": "string", "kind": "string", "metadata": "object"} {
					fields[name] = schema{"type": kind}
				}
			}
			if err := write(dir, definition.Spec.Names.Kind, definition.Spec.Group, version.Name, root); err != nil {
				return err
			}
		}
	}
}

// write writes a schema under the name that kubeconform computes: the first word of the group is part of it.
func write(dir, kind, group, version string, s schema) error {
	first, _, _ := strings.Cut(group, ".")
	name := strings.ToLower(strings.Join([]string{kind, first, version}, "-")) + ".json"
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // public schemas
		return err
	}
	return os.WriteFile(filepath.Join(dir, strings.Replace(name, "--", "-", 1)), text, 0o644) //nolint:gosec // as above
}
