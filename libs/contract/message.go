package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// failure is one reason why the value at a path is invalid.
type failure struct {
	path    []string
	message string
}

// failures converts the validator's tree of causes into a list of plain sentences.
func failures(e *jsonschema.ValidationError, out []failure) []failure {
	at := e.InstanceLocation
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			out = append(out, failure{join(at, name), "Is required."})
		}
		return out
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			out = append(out, failure{join(at, name), fmt.Sprintf("Is required together with %s.", k.Prop)})
		}
		return out
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			out = append(out, failure{join(at, name), "Unknown field."})
		}
		return out
	case *kind.PropertyNames:
		return out // badName reports it at the right place
	case *badName:
		for _, f := range failures(k.err, nil) {
			out = append(out, failure{join(at, k.name), "The key: " + lowerFirst(f.message)})
		}
		return out
	case *kind.OneOf, *kind.AnyOf:
		return alternatives(e, out)
	}
	if len(e.Causes) > 0 {
		for _, c := range e.Causes {
			out = failures(c, out)
		}
		return out
	}
	return append(out, failure{at, sentence(e.ErrorKind)})
}

func join(path []string, name string) []string {
	return append(append(make([]string, 0, len(path)+1), path...), name)
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// oneRequired returns a failure on each property of which one is required: alternatives that require one property each. It returns nil
// for other alternatives.
func oneRequired(e *jsonschema.ValidationError) []failure {
	names := make([]string, len(e.Causes))
	for i, branch := range e.Causes {
		for len(branch.Causes) == 1 {
			branch = branch.Causes[0]
		}
		k, ok := branch.ErrorKind.(*kind.Required)
		if !ok || len(k.Missing) != 1 || len(branch.InstanceLocation) != len(e.InstanceLocation) {
			return nil
		}
		names[i] = k.Missing[0]
	}
	var out []failure
	for i, name := range names {
		others := slices.Delete(slices.Clone(names), i, i+1)
		out = append(out, failure{join(e.InstanceLocation, name), "Is required if there is no " + strings.Join(others, " or ") + "."})
	}
	return out
}

// alternatives returns the failures of the alternative with the value's type. If there is none, it lists the allowed types.
func alternatives(e *jsonschema.ValidationError, out []failure) []failure {
	if missing := oneRequired(e); len(missing) > 1 {
		return append(out, missing...)
	}
	var types []string
	for _, branch := range e.Causes {
		want := wrongType(branch, len(e.InstanceLocation))
		if want == nil {
			return failures(branch, out)
		}
		types = append(types, want...)
	}
	if len(types) == 0 {
		return append(out, failure{e.InstanceLocation, "Matches more than one of the allowed forms."})
	}
	return append(out, failure{e.InstanceLocation, wants(types)})
}

// wrongType returns the types that an alternative allows when the value at depth has another type.
func wrongType(e *jsonschema.ValidationError, depth int) []string {
	if k, ok := e.ErrorKind.(*kind.Type); ok && len(e.InstanceLocation) == depth {
		return k.Want
	}
	if len(e.Causes) == 1 {
		return wrongType(e.Causes[0], depth)
	}
	return nil
}

var typeNames = map[string]string{
	"string": "a string", "integer": "a whole number", "number": "a number", "boolean": "true or false",
	"object": "an object", "array": "a list", "null": "null",
}

func wants(types []string) string {
	var names []string
	for _, t := range types {
		if t != "null" {
			names = append(names, typeNames[t])
		}
	}
	if slices.Contains(types, "null") {
		names = append(names, "null")
	}
	if len(names) == 1 {
		return "Must be " + names[0] + "."
	}
	last := len(names) - 1
	return "Must be " + strings.Join(names[:last], ", ") + " or " + names[last] + "."
}

func sentence(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return wants(k.Want)
	case *notInteger:
		return "Must be a whole number."
	case *kind.Enum:
		return "Must be one of: " + list(k.Want) + "."
	case *kind.Const:
		return "Must be " + show(k.Want) + "."
	case *kind.Format:
		return format(k)
	case *kind.Pattern:
		return "Must match " + k.Want + "."
	case *kind.FalseSchema, *kind.Not:
		return "Is not allowed."
	}
	return bound(k)
}

func format(k *kind.Format) string {
	if k.Err == errYears { //nolint:errorlint // set by this package, never wrapped
		return fmt.Sprintf("Must be a date from %d-01-01 to %d-12-31.", minYear, maxYear)
	}
	if m := formatMessages[k.Want]; m != "" {
		return m
	}
	if k.Want == "one-line" {
		return k.Err.Error()
	}
	return "Must be a valid " + k.Want + "."
}

func bound(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		if k.Want == 1 {
			return "Must not be empty."
		}
		return "Must be at least " + count(k.Want, "character") + "."
	case *kind.MaxLength:
		return "Must be at most " + count(k.Want, "character") + "."
	case *kind.MinItems:
		return "Must have at least " + count(k.Want, "item") + "."
	case *kind.MaxItems:
		return "Must have at most " + count(k.Want, "item") + "."
	case *kind.UniqueItems:
		return "Must not contain duplicate items."
	case *kind.MinProperties:
		return "Must have at least " + count(k.Want, "key") + "."
	case *kind.MaxProperties:
		return "Must have at most " + count(k.Want, "key") + "."
	case *kind.Minimum:
		return "Must be at least " + k.Want.RatString() + "."
	case *kind.Maximum:
		return "Must be at most " + k.Want.RatString() + "."
	case *kind.ExclusiveMinimum:
		return "Must be more than " + k.Want.RatString() + "."
	case *kind.ExclusiveMaximum:
		return "Must be less than " + k.Want.RatString() + "."
	case *kind.MultipleOf:
		return "Must be a multiple of " + k.Want.RatString() + "."
	}
	return "Is not valid."
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func list(values []any) string {
	shown := make([]string, len(values))
	for i, v := range values {
		shown[i] = show(v)
	}
	return strings.Join(shown, ", ")
}

func show(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "a fixed value"
	}
	return string(b)
}
