package outbox

import (
	"bytes"
	"encoding/json"
)

// bookkeeping names the fields that change with every write. They are not part of the difference.
var bookkeeping = map[string]bool{"version": true, "updated_at": true}

type attribute struct {
	name  string
	value json.RawMessage
}

// Diff returns the previous_attributes of a change: the fields whose values differ between before and after, with their values in
// before. The previous value of a new field is null. It compares only the top level, byte by byte without white space, because the
// same view renders both bodies. If there is no difference, it returns {}. version and updated_at are omitted.
func Diff(before, after json.RawMessage) json.RawMessage {
	now := map[string]json.RawMessage{}
	for _, a := range attributes(after) {
		now[a.name] = a.value
	}
	out := []byte{'{'}
	put := func(name string, value json.RawMessage) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		quoted, _ := json.Marshal(name) // a string can always be encoded
		out = append(append(append(out, quoted...), ':'), value...)
	}
	for _, a := range attributes(before) {
		value, present := now[a.name]
		delete(now, a.name)
		if !bookkeeping[a.name] && (!present || !bytes.Equal(a.value, value)) {
			put(a.name, a.value)
		}
	}
	for _, a := range attributes(after) {
		if _, added := now[a.name]; added && !bookkeeping[a.name] {
			put(a.name, json.RawMessage("null"))
		}
	}
	return append(out, '}')
}

// attributes returns the fields of an object in their order, with compact values. For a value that is not an object it returns
// none.
func attributes(object json.RawMessage) []attribute {
	var compact bytes.Buffer
	if err := json.Compact(&compact, object); err != nil {
		return nil
	}
	dec := json.NewDecoder(&compact)
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil
	}
	var out []attribute
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil
		}
		out = append(out, attribute{name: name.(string), value: value}) // The token of a member's name is a string.
	}
	return out
}
