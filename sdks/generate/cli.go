package main

import (
	"fmt"
	"go/format"
	"maps"
	"slices"
	"strings"

	"holdfast.dev/sdks/generate/model"
)

// cliPath is the file of the command line with the operations, relative to its folder.
const cliPath = "internal/operations/operations.gen.go"

// cli returns the table of operations of the command line, and the list of its commands.
func cli(m *model.Model, version string) (map[string][]byte, error) {
	f := &goFile{}
	f.printf("// Version is the version of the command line, which is that of the SDKs.\nconst Version = %q\n\n", version)
	f.printf("// Scopes are all scopes.\nvar Scopes = %s\n\n", cliStrings(m.Scopes))
	f.printf("// EventTypes are the types of events.\nvar EventTypes = []string{\n")
	for _, e := range m.Events {
		f.printf("%q,\n", e.Type)
	}
	f.printf("}\n\n// Remedies say what to do about an error, by its code.\nvar Remedies = map[string]string{\n")
	for _, e := range m.Errors {
		f.printf("%q: %q,\n", e.Code, goText(e.Remedy))
	}
	f.printf("}\n\n// Objects are the properties of the rows of lists and of the objects in them, by schema. Each property has the schemas of its\n// objects, * for a map with any names, or nothing for other values.\nvar Objects = map[string]map[string][]string{\n")
	for _, name := range slices.Sorted(maps.Keys(m.Objects)) {
		f.printf("%q: {", name)
		for i, property := range slices.Sorted(maps.Keys(m.Objects[name])) {
			if i > 0 {
				f.printf(", ")
			}
			f.printf("%q: %s", property, strings.TrimPrefix(cliStrings(m.Objects[name][property]), "[]string"))
		}
		f.printf("},\n")
	}
	f.printf("}\n\n// Resources are the resources in the order of the contract.\nvar Resources = []Resource{\n")
	for _, res := range m.Resources {
		f.printf("{Name: %q, Description: %q, Operations: []Operation{\n", res.Name.Kebab(), goText(res.Description))
		for _, op := range res.Operations {
			if op.Kind != model.Raw || op.MediaType != csvType { // the list has it
				f.cliOperation(op, slices.ContainsFunc(res.Operations, func(other model.Operation) bool { return other.ID == op.ID+"Csv" }))
			}
		}
		f.printf("}},\n")
	}
	f.printf("}\n")
	text, err := format.Source(append([]byte("// Code generated from the contract by make gen. DO NOT EDIT.\n\npackage operations\n\n"), f.text.Bytes()...))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cliPath, err)
	}
	return map[string][]byte{cliPath: text, cliReferencePath: cliReference(m)}, nil
}

// csvType is the media type of lists as CSV.
const csvType = "text/csv"

// cliKinds are the names of the kinds.
var cliKinds = map[model.Kind]string{model.Plain: "Plain", model.Page: "Page", model.Raw: "Raw", model.Stream: "Stream"}

// cliOperation writes an operation. csv means that it also returns CSV.
func (f *goFile) cliOperation(op model.Operation, csv bool) {
	f.printf("{\nName: %q, Kind: %s, Method: %q, Path: %q,\n", op.Name.Kebab(), cliKinds[op.Kind], op.Method, op.Path)
	f.printf("Summary: %q,\nDescription: %q,\n", op.Summary, goText(op.Description))
	for _, flag := range []struct {
		name string
		set  bool
	}{{"CSV", csv}, {"List", op.Item != ""}, {"Public", op.Public}, {"Conditional", op.Conditional}, {"Body", op.Request != ""}} {
		if flag.set {
			f.printf("%s: true,\n", flag.name)
		}
	}
	if op.Item != "" {
		f.printf("Item: %q,\n", op.Item)
	}
	if op.Kind == model.Raw {
		f.printf("MediaType: %q,\n", op.MediaType)
	}
	if len(op.Scopes) > 0 {
		f.printf("Scopes: %s,\n", cliStrings(op.Scopes))
	}
	if len(op.Columns) > 0 {
		f.printf("Columns: %s,\n", cliStrings(op.Columns))
	}
	f.cliParams("PathParams", fromParams(op.PathParams))
	f.cliParams("QueryParams", fromParams(op.QueryParams))
	f.cliParams("HeaderParams", fromParams(op.HeaderParams))
	f.cliParams("Fields", op.Fields)
	f.printf("},\n")
}

// fromParams returns parameters in the form of fields.
func fromParams(params []model.Param) []model.Field {
	var all []model.Field
	for _, p := range params {
		all = append(all, model.Field{Path: p.Name, Type: p.Type, Array: p.Array, Map: p.Map, Required: p.Required, Values: p.Values, Description: p.Description})
	}
	return all
}

// cliParams writes a list of parameters, unless it is empty.
func (f *goFile) cliParams(name string, params []model.Field) {
	if len(params) == 0 {
		return
	}
	f.printf("%s: []Param{\n", name)
	for _, p := range params {
		f.cliParam(p)
	}
	f.printf("},\n")
}

// cliParam writes a parameter or a field of the body, which have the same form.
func (f *goFile) cliParam(p model.Field) {
	f.printf("{Name: %q, Type: %q", p.Path, p.Type)
	for _, mark := range []struct {
		name string
		set  bool
	}{{"Array", p.Array}, {"Map", p.Map}, {"Required", p.Required}, {"Nullable", p.Nullable}} {
		if mark.set {
			f.printf(", %s: true", mark.name)
		}
	}
	if len(p.Values) > 0 {
		f.printf(", Values: %s", cliStrings(p.Values))
	}
	f.printf(", Description: %q},\n", goText(p.Description))
}

// cliStrings returns a list of strings in Go.
func cliStrings(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = fmt.Sprintf("%q", s)
	}
	return "[]string{" + strings.Join(quoted, ", ") + "}"
}
