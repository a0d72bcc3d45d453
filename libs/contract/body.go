package contract

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"holdfast.dev/libs/apperr"
)

const (
	maxDepth = 64
	// maxFields bounds an answer: a body of 1 MiB can be wrong in 100,000 places.
	maxFields = 100
	// maxFieldName bounds the characters of a field's name in an answer; clients choose metadata keys.
	maxFieldName = 200
)

// ErrMalformed is the 400 of a body that is not one JSON object.
var ErrMalformed = apperr.New(apperr.BadRequest, "malformed_json", "The body must be one JSON object, in UTF-8.")

// CheckJSON returns ErrMalformed unless body is exactly one JSON object in UTF-8, nested at most 64 deep.
// A key may be given twice.
func CheckJSON(body []byte) error {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' || !utf8.Valid(body) {
		return ErrMalformed
	}
	if tooDeep(body) {
		return ErrMalformed.Saying("The body must not be nested more than %d levels deep.", maxDepth)
	}
	if !json.Valid(body) {
		return ErrMalformed
	}
	return nil
}

func tooDeep(body []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// ValidateBody checks a body that CheckJSON accepted and returns a 422 whose fields stand in the contract's
// property order, nested ones inside their parent, with dotted names (metadata.key, line_items.0.quantity).
// Unknown fields are ignored. An operation without a body takes any.
func (op *Operation) ValidateBody(body []byte) error {
	if op.body == nil {
		return nil
	}
	root, err := parse(body)
	if err != nil {
		return err
	}
	found := badTexts(root, nil, nil)
	in := &instance{}
	var invalid *jsonschema.ValidationError
	if err := op.body.Validate(in.of(root, op.shape)); errors.As(err, &invalid) {
		found = failures(invalid, found)
	} else if err != nil {
		return fmt.Errorf("validate body of %s: %w", op.ID, err)
	}
	if len(found) == 0 {
		return nil
	}
	return apperr.Fields(in.fields(found, root, op.shape))
}

// badTexts finds texts and keys, known or not, that no field may hold.
func badTexts(n *node, path []string, out []failure) []failure {
	for i, c := range n.children {
		if len(out) >= maxFields {
			break
		}
		at := c.key
		if n.kind == array {
			at = strconv.Itoa(i)
		}
		if msg := forbidden(c.rawKey, c.key); msg != "" {
			out = append(out, failure{join(path, at), "The key: " + lowerFirst(msg)})
		}
		if s, ok := c.value.(string); ok {
			if msg := forbidden(c.raw, s); msg != "" {
				out = append(out, failure{join(path, at), msg})
			}
		}
		if len(c.children) > 0 {
			out = badTexts(c, join(path, at), out)
		}
	}
	return out
}

// fields sorts the failures and names them.
func (in *instance) fields(found []failure, sent *node, s *shape) []apperr.FieldError {
	type ranked struct {
		failure
		rank []int
	}
	all := make([]ranked, len(found))
	for i, f := range found {
		for j, seg := range f.path {
			if key, ok := in.standIns[seg]; ok {
				f.path[j] = key
			}
		}
		if hint := s.at(f.path).message(); hint != "" && strings.HasPrefix(f.message, "Must match ") {
			f.message = hint
		}
		all[i] = ranked{f, s.rank(sent, f.path)}
	}
	// Of one field, what is said of the key comes before what is said of the value.
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(slices.Compare(a.rank, b.rank), strings.Compare(b.message, a.message))
	})
	var out []apperr.FieldError
	for _, r := range all {
		f := apperr.FieldError{Field: dotted(r.path), Message: r.message}
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
		if len(out) == maxFields {
			break
		}
	}
	return out
}

func (s *shape) message() string {
	if s == nil {
		return ""
	}
	return s.hint
}

// dotted joins a path. The body as a whole, which no schema here refuses, is called "body", and the empty
// name "": an answer must name something.
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

// Decode reads a body that ValidateBody accepted into a generated type. It takes exactly the properties that
// were validated: encoding/json alone would also match FIRST_NAME to first_name, past the validator, and
// merge an object that is given twice. Free-form values such as metadata arrive as sent.
func (op *Operation) Decode(body []byte, into any) error {
	root, err := parse(body)
	if err != nil {
		return err
	}
	err = json.Unmarshal(prune(nil, root, op.shape), into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && strings.HasPrefix(wrong.Value, "number") {
		return apperr.Field(wrong.Field, "Is out of range.")
	}
	if err != nil {
		return fmt.Errorf("decode body of %s: %w", op.ID, err)
	}
	return nil
}

// prune writes n without what the contract does not name.
func prune(out []byte, n *node, s *shape) []byte {
	switch {
	case n.kind == object && s.closed():
		out = append(out, '{')
		first := true
		for i, c := range n.children {
			if last, _ := n.find(c.key); last != i || s.props[c.key] == nil {
				continue
			}
			if !first {
				out = append(out, ',')
			}
			first = false
			out = append(append(out, c.rawKey...), ':')
			out = prune(out, c, s.member(c.key))
		}
		return append(out, '}')
	case n.kind == array && s.item().closed():
		out = append(out, '[')
		for i, c := range n.children {
			if i > 0 {
				out = append(out, ',')
			}
			out = prune(out, c, s.item())
		}
		return append(out, ']')
	default:
		return append(out, n.raw...)
	}
}
