package contract

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical checks a body as Operation.Parse does, in one pass, and returns it with its names sorted and without white space.
// Numbers are not changed, so 1 and 1.0 differ. Each string has exactly one canonical form.
func Canonical(body []byte) ([]byte, error) {
	defer reserveParser(len(body))()
	t, err := start(body)
	if err != nil {
		return nil, err
	}
	w := canonical{tokens: t, out: make([]byte, 0, len(body))}
	if err := w.object(); err != nil {
		return nil, err
	}
	return w.out, t.end()
}

type canonical struct {
	*tokens
	out     []byte
	members []member // of the objects that are not closed yet
	sorted  []byte
}

// member is the position in out of a name with its value and a comma.
type member struct {
	name       []byte
	start, end int
}

func (w *canonical) value() error {
	kind, raw, err := w.next()
	if err != nil {
		return err
	}
	return w.write(kind, raw)
}

func (w *canonical) write(kind jsontext.Kind, raw []byte) error {
	switch kind {
	case objectKind:
		return w.object()
	case arrayKind:
		return w.array()
	case stringKind:
		w.out = appendCanonical(w.out, raw)
	default:
		w.out = append(w.out, raw...)
	}
	return nil
}

func (w *canonical) object() error {
	w.out = append(w.out, '{')
	first, mark := len(w.out), len(w.members)
	for {
		kind, raw, err := w.next()
		if err != nil {
			return err
		}
		if kind == objectEnd {
			break
		}
		at := len(w.out)
		w.out = append(appendCanonical(w.out, raw), ':')
		if err := w.value(); err != nil {
			return err
		}
		w.out = append(w.out, ',')
		w.members = append(w.members, member{unquote(raw), at, len(w.out)})
	}
	w.sort(first, w.members[mark:])
	w.members = w.members[:mark]
	w.close(first, '}')
	return nil
}

// sort sorts the members of an object by name. They begin at first.
func (w *canonical) sort(first int, members []member) {
	byName := func(a, b member) int { return bytes.Compare(a.name, b.name) }
	if slices.IsSortedFunc(members, byName) {
		return
	}
	slices.SortFunc(members, byName)
	w.sorted = slices.Grow(w.sorted[:0], len(w.out)-first)
	for _, m := range members {
		w.sorted = append(w.sorted, w.out[m.start:m.end]...)
	}
	copy(w.out[first:], w.sorted)
}

func (w *canonical) array() error {
	w.out = append(w.out, '[')
	first := len(w.out)
	for {
		kind, raw, err := w.next()
		if err != nil {
			return err
		}
		if kind == arrayEnd {
			break
		}
		if err := w.write(kind, raw); err != nil {
			return err
		}
		w.out = append(w.out, ',')
	}
	w.close(first, ']')
	return nil
}

// close replaces the last comma with end.
func (w *canonical) close(first int, end byte) {
	if len(w.out) > first {
		w.out = w.out[:len(w.out)-1]
	}
	w.out = append(w.out, end)
}

// appendCanonical appends a string in the form of encoding/json.
func appendCanonical(out, raw []byte) []byte {
	for _, c := range raw {
		switch c {
		case '\\', '<', '>', '&', "\u2028"[0]:
			return append(out, marshal(string(unquote(raw)))...)
		}
	}
	return append(out, raw...)
}

func marshal(s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil { // every string has a canonical form
		return nil
	}
	return quoted
}
