// Package form decodes Stripe's form encoding, in which brackets denote objects and lists: metadata[k]=v, expand[]=v,
// created[gte]=1.
package form

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/services/local/stripe/internal/domain"
)

// maxDepth is the maximum number of brackets in a name.
const maxDepth = 8

// Values is a decoded form. It records the first error of its readers.
type Values struct {
	root   *node
	digest string
	err    *domain.Error
}

// node is a value, or the values inside brackets in the order of the form.
type node struct {
	text     string
	names    []string
	children map[string]*node
}

func (n *node) child(name string) *node {
	if n.children == nil {
		n.children = map[string]*node{}
	}
	if name == "" { // a[]=v appends
		name = strconv.Itoa(len(n.names))
	}
	next := n.children[name]
	if next == nil {
		next = &node{}
		n.children[name] = next
		n.names = append(n.names, name)
	}
	return next
}

// Parse decodes forms and merges the later ones into the first.
func Parse(forms ...string) (*Values, *domain.Error) {
	v := &Values{root: &node{}}
	var pairs []string
	for _, text := range forms {
		for pair := range strings.SplitSeq(text, "&") {
			if pair == "" {
				continue
			}
			name, value, _ := strings.Cut(pair, "=")
			name, err := url.QueryUnescape(name)
			if err == nil {
				value, err = url.QueryUnescape(value)
			}
			path, ok := split(name)
			if err != nil || !ok || strings.ContainsRune(name+value, 0) {
				return nil, domain.BadParam("", "", "Invalid request: the form cannot be decoded")
			}
			n := v.root
			for _, part := range path {
				n = n.child(part)
			}
			n.text = value
			pairs = append(pairs, name+"\x00"+value)
		}
	}
	slices.Sort(pairs)
	sum := sha256.Sum256([]byte(strings.Join(pairs, "\x01")))
	v.digest = hex.EncodeToString(sum[:16])
	return v, nil
}

// split splits a[b][c] into a, b, and c.
func split(name string) ([]string, bool) {
	open := strings.IndexByte(name, '[')
	if open < 0 {
		return []string{name}, name != ""
	}
	path, rest := []string{name[:open]}, name[open:]
	for rest != "" {
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 || len(path) > maxDepth {
			return nil, false
		}
		path = append(path, rest[1:end])
		rest = rest[end+1:]
	}
	return path, open > 0
}

// Digest returns a digest of the parameters that does not depend on their order.
func (v *Values) Digest() string { return v.digest }

// Err returns the first recorded error.
func (v *Values) Err() *domain.Error { return v.err }

// Fail records the first error.
func (v *Values) Fail(code, param, format string, args ...any) {
	if v.err == nil {
		v.err = domain.BadParam(code, param, fmt.Sprintf(format, args...))
	}
}

// Only records an error for a name outside brackets that is not allowed.
func (v *Values) Only(allowed []string) {
	for _, name := range v.root.names {
		if !slices.Contains(allowed, name) {
			v.Fail("parameter_unknown", name, "Received unknown parameter: %s", name)
		}
	}
}

func (v *Values) find(name string) *node {
	path, _ := split(name)
	n := v.root
	for _, part := range path {
		if n = n.children[part]; n == nil {
			return nil
		}
	}
	return n
}

// Has reports whether the form contains the name, with or without brackets.
func (v *Values) Has(name string) bool { return v.find(name) != nil }

// Text returns the value of a name such as created[gte]; nil if the form has none.
func (v *Values) Text(name string) *string {
	n := v.find(name)
	if n == nil {
		return nil
	}
	if len(n.names) > 0 {
		v.Fail("", name, "Invalid string: %s", name)
	}
	return &n.text
}

// Or returns the value of a name, or the default if the form has none.
func (v *Values) Or(name, otherwise string) string {
	if text := v.Text(name); text != nil && *text != "" {
		return *text
	}
	return otherwise
}

// Required returns the value of a required name.
func (v *Values) Required(name string) string {
	text := v.Text(name)
	switch {
	case text == nil:
		v.Fail("parameter_missing", name, "Missing required param: %s.", name)
		return ""
	case *text == "":
		v.Fail("parameter_invalid_empty", name, "You passed an empty string for '%s'. We assume empty values are an attempt to unset a parameter; however '%s' cannot be unset.", name, name)
	}
	return *text
}

// Int returns a whole number; nil if the form has none.
func (v *Values) Int(name string) *int64 {
	text := v.Text(name)
	if text == nil {
		return nil
	}
	n, err := strconv.ParseInt(*text, 10, 64)
	if err != nil {
		v.Fail("parameter_invalid_integer", name, "Invalid integer: %s", *text)
		return nil
	}
	return &n
}

// Positive returns a whole number of at least 1; nil if the form has none.
func (v *Values) Positive(name string) *int64 {
	n := v.Int(name)
	if n != nil && *n < 1 {
		v.Fail("parameter_invalid_integer", name, "This value must be greater than or equal to 1.")
	}
	return n
}

// OneOf returns one of the allowed values; nil if the form has no value or an empty one.
func (v *Values) OneOf(name string, allowed []string) *string {
	text := v.Text(name)
	if text == nil || *text == "" {
		return nil
	}
	if !slices.Contains(allowed, *text) {
		last := len(allowed) - 1
		v.Fail("", name, "Invalid %s: must be one of %s, or %s", name, strings.Join(allowed[:last], ", "), allowed[last])
	}
	return text
}

// List returns the values of a name with [] or [0].
func (v *Values) List(name string) []string {
	n := v.find(name)
	if n == nil {
		return nil
	}
	if len(n.names) == 0 && n.text != "" {
		v.Fail("", name, "Invalid array")
		return nil
	}
	list := make([]string, 0, len(n.names))
	for _, at := range n.names {
		list = append(list, n.children[at].text)
	}
	return list
}

// Stripe's limits for metadata.
const (
	maxMetadata      = 50
	maxMetadataName  = 40
	maxMetadataValue = 500
)

// Metadata returns the metadata. Names with an empty value are left out.
func (v *Values) Metadata() map[string]string {
	m := map[string]string{}
	n := v.find("metadata")
	if n == nil {
		return m
	}
	for _, name := range n.names {
		value := n.children[name].text
		switch {
		case len(n.children[name].names) > 0:
			v.Fail("", "metadata", "Metadata values must be strings")
		case len([]rune(name)) > maxMetadataName:
			v.Fail("", "metadata", "Metadata keys can have up to %d characters; `%s` is longer", maxMetadataName, name)
		case len([]rune(value)) > maxMetadataValue:
			v.Fail("", "metadata["+name+"]", "Metadata values can have up to %d characters, but you passed in a value that is %d characters.", maxMetadataValue, len([]rune(value)))
		case value != "":
			m[name] = value
		}
	}
	if len(m) > maxMetadata {
		v.Fail("", "metadata", "Metadata can have up to %d keys", maxMetadata)
	}
	return m
}
