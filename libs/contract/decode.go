package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"holdfast.dev/libs/apperr"
)

// Decode fills into, a pointer to a generated type, with a body that ValidateBody accepted. Names must match exactly. Free-form
// values such as metadata are stored compact, in the order sent and in plain UTF-8.
func (op *Operation) Decode(b *Body, into any) error {
	err := decode(reflect.ValueOf(into).Elem(), b.root, op.shape)
	var wrong *rangeError
	if errors.As(err, &wrong) {
		return apperr.Field(dotted(wrong.path), "Is out of range.")
	}
	if err != nil {
		return fmt.Errorf("decode body of %s: %w", op.ID, err)
	}
	return nil
}

// rangeError reports that a number does not fit into its Go type.
type rangeError struct{ path []string }

// Error implements error.
func (e *rangeError) Error() string { return strings.Join(e.path, ".") + " is out of range" }

// within adds the field to the front of a rangeError's path.
func within(field string, err error) error {
	var wrong *rangeError
	if errors.As(err, &wrong) {
		wrong.path = append([]string{field}, wrong.path...)
	}
	return err
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// decode sets v as encoding/json would, without parsing the text again.
func decode(v reflect.Value, n *node, s *shape) error {
	if v.Type() == rawMessage {
		v.SetBytes(n.write(nil, s))
		return nil
	}
	if optional(v.Type()) {
		return decodeNullable(v, n, s)
	}
	if n.kind == nullKind {
		v.SetZero()
		return nil
	}
	if m, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		return m.UnmarshalJSON(n.write(nil, s))
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return decode(v.Elem(), n, s)
	case reflect.Struct:
		return decodeStruct(v, n, s)
	case reflect.Slice:
		return decodeSlice(v, n, s)
	case reflect.Map:
		return decodeMap(v, n, s)
	default:
		return decodeScalar(v, n)
	}
}

// optional reports whether t is a nullable.Nullable, a map of which at most one key is set: true with the value, or
// false for null.
func optional(t reflect.Type) bool { return t.Kind() == reflect.Map && t.Key().Kind() == reflect.Bool }

func decodeNullable(v reflect.Value, n *node, s *shape) error {
	given := n.kind != nullKind
	value := reflect.New(v.Type().Elem()).Elem()
	if given {
		if err := decode(value, n, s); err != nil {
			return err
		}
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), 1))
	v.SetMapIndex(reflect.ValueOf(given), value)
	return nil
}

func decodeStruct(v reflect.Value, n *node, s *shape) error {
	if n.kind != objectKind {
		return mismatch(v, n)
	}
	fields := fieldsOf(v.Type())
	for i := range n.children {
		c := &n.children[i]
		at, ok := fields[c.key]
		if !ok {
			continue
		}
		if err := decode(v.Field(at), c, s.member(c.key)); err != nil {
			return within(c.key, err)
		}
	}
	return nil
}

// fieldCache caches the results of fieldsOf by type.
var fieldCache sync.Map

// fieldsOf maps the JSON names of a struct's fields to their indexes.
func fieldsOf(t reflect.Type) map[string]int {
	if known, ok := fieldCache.Load(t); ok {
		return known.(map[string]int) // The map holds no other type.
	}
	fields := map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" && t.Field(i).IsExported() {
			fields[name] = i
		}
	}
	fieldCache.Store(t, fields)
	return fields
}

func decodeSlice(v reflect.Value, n *node, s *shape) error {
	if n.kind != arrayKind {
		return mismatch(v, n)
	}
	list := reflect.MakeSlice(v.Type(), len(n.children), len(n.children))
	for i := range n.children {
		if err := decode(list.Index(i), &n.children[i], s.item()); err != nil {
			return within(strconv.Itoa(i), err)
		}
	}
	v.Set(list)
	return nil
}

func decodeMap(v reflect.Value, n *node, s *shape) error {
	if n.kind != objectKind || v.Type().Key().Kind() != reflect.String {
		return mismatch(v, n)
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.children)))
	for i := range n.children {
		c := &n.children[i]
		value := reflect.New(v.Type().Elem()).Elem()
		if err := decode(value, c, s.member(c.key)); err != nil {
			return within(c.key, err)
		}
		v.SetMapIndex(reflect.ValueOf(c.key).Convert(v.Type().Key()), value)
	}
	return nil
}

func decodeScalar(v reflect.Value, n *node) error {
	boolean := n.kind == jsontext.KindTrue || n.kind == jsontext.KindFalse
	switch {
	case v.Kind() == reflect.String && n.kind == stringKind:
		v.SetString(n.text)
	case v.Kind() == reflect.Bool && boolean:
		v.SetBool(n.kind == jsontext.KindTrue)
	case v.CanInt() && n.kind == numberKind:
		i, err := strconv.ParseInt(n.text, 10, v.Type().Bits())
		if err != nil {
			return &rangeError{}
		}
		v.SetInt(i)
	case v.CanFloat() && n.kind == numberKind:
		f, err := strconv.ParseFloat(n.text, v.Type().Bits())
		if err != nil {
			return &rangeError{}
		}
		v.SetFloat(f)
	default:
		return mismatch(v, n)
	}
	return nil
}

func mismatch(v reflect.Value, n *node) error {
	return fmt.Errorf("a %s does not fit into %s", n.kind, v.Type())
}

// write appends n as compact JSON in plain UTF-8, without the fields that the contract does not declare.
func (n *node) write(out []byte, s *shape) []byte {
	switch n.kind {
	case objectKind:
		out = append(out, '{')
		first := len(out)
		for i := range n.children {
			c := &n.children[i]
			if s.closed() && s.props[c.key] == nil {
				continue
			}
			if len(out) > first {
				out = append(out, ',')
			}
			out = c.write(append(quote(out, c.key), ':'), s.member(c.key))
		}
		return append(out, '}')
	case arrayKind:
		out = append(out, '[')
		for i := range n.children {
			if i > 0 {
				out = append(out, ',')
			}
			out = n.children[i].write(out, s.item())
		}
		return append(out, ']')
	case stringKind:
		return quote(out, n.text)
	default:
		return append(out, n.literal()...)
	}
}

func quote(out []byte, s string) []byte {
	out, _ = jsontext.AppendQuote(out, s) // s is UTF-8, which cannot fail
	return out
}
