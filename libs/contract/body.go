package contract

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"holdfast.dev/libs/apperr"
)

const (
	// maxFields bounds the errors in a response: a body of 1 MiB can have 100,000 invalid fields.
	maxFields = 100
	// maxFieldName bounds the characters of a field's name in a response, because clients choose the keys of metadata.
	maxFieldName = 200
)

// ValidateBody returns a 422 whose fields are in the contract's property order, nested ones inside their parent, with dotted names
// (metadata.key, line_items.0.quantity). Unknown fields are ignored. With strict, each is an error, listed after the known fields.
// An operation without a body accepts any body.
func (op *Operation) ValidateBody(b *Body, strict bool) error {
	if op.body == nil {
		return nil
	}
	found := slices.Clone(b.nul)
	var invalid *jsonschema.ValidationError
	if err := op.body.Validate(b.root.instance(op.shape)); errors.As(err, &invalid) {
		found = failures(invalid, found)
	} else if err != nil {
		return fmt.Errorf("validate body of %s: %w", op.ID, err)
	}
	fields := named(found, b.root, op.shape)
	if strict {
		for _, u := range op.unknownFields(b) {
			fields = add(fields, apperr.FieldError{Field: u.name, Message: u.message()})
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return apperr.Fields(fields)
}

// add appends a field unless the list already has it or is full.
func add(fields []apperr.FieldError, f apperr.FieldError) []apperr.FieldError {
	if len(fields) == maxFields || slices.Contains(fields, f) {
		return fields
	}
	return append(fields, f)
}

// named sorts the failures and adds the field name to each.
func named(found []failure, sent *node, s *shape) []apperr.FieldError {
	type ranked struct {
		failure
		rank []int
	}
	all := make([]ranked, len(found))
	for i, f := range found {
		if hint := s.at(f.path).message(); hint != "" && strings.HasPrefix(f.message, "Must match ") {
			f.message = hint
		}
		all[i] = ranked{f, s.rank(sent, f.path)}
	}
	// For one field, failures of the key come before failures of the value.
	slices.SortStableFunc(all, func(a, b ranked) int {
		return cmp.Or(slices.Compare(a.rank, b.rank), strings.Compare(b.message, a.message))
	})
	var out []apperr.FieldError
	for _, r := range all {
		out = add(out, apperr.FieldError{Field: dotted(r.path), Message: r.message})
	}
	return out
}

func (s *shape) message() string {
	if s == nil {
		return ""
	}
	return s.hint
}

// dotted joins a path. The body as a whole is called "body", and the empty name "": an error must always name a field.
func dotted(path []string) string {
	if len(path) == 0 {
		return "body"
	}
	name := strings.Join(path, ".")
	if name == "" {
		return `""`
	}
	if utf8.RuneCountInString(name) > maxFieldName {
		return string([]rune(name)[:maxFieldName]) + "…"
	}
	return name
}

// compatible produces the same bytes as encoding/json in half the time, except that all characters are plain UTF-8.
var compatible = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(false))

// Encode returns v as JSON in the format of all bodies: plain UTF-8, no escapes for HTML or JavaScript, no final newline. The same
// bytes are stored, sent and published.
func Encode(v any) ([]byte, error) {
	body, err := json.Marshal(v, compatible)
	if err != nil {
		return nil, fmt.Errorf("encode body: %w", err)
	}
	return body, nil
}

// EncodeTo appends the result of Encode to out, for callers that encode many values in sequence.
func EncodeTo(out *bytes.Buffer, v any) error {
	if err := json.MarshalWrite(out, v, compatible); err != nil {
		return fmt.Errorf("encode body: %w", err)
	}
	return nil
}

// SameBody reports whether two values have equal bodies, so that a change from one to the other is not visible.
func SameBody(a, b any) (bool, error) {
	x, err := Encode(a)
	if err != nil {
		return false, err
	}
	y, err := Encode(b)
	return bytes.Equal(x, y), err
}
