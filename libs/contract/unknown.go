package contract

import (
	"strconv"
	"strings"
)

// unknownField is a field that the contract does not declare, in an object with declared fields.
type unknownField struct {
	name  string   // dotted
	key   string   // its last part
	known []string // the fields of its object
}

// Ignored returns the dotted names of b's fields that the contract does not declare, in the order sent, at most 100.
func (op *Operation) Ignored(b *Body) []string {
	var names []string
	for _, u := range op.unknownFields(b) {
		names = append(names, u.name)
	}
	return names
}

func (op *Operation) unknownFields(b *Body) []unknownField {
	if op.body == nil {
		return nil
	}
	return op.shape.unknown(b.root, nil, nil)
}

// unknown does not search inside an unknown field. If the contract declares no field, every field is unknown.
func (s *shape) unknown(n *node, path []string, out []unknownField) []unknownField {
	if s == nil {
		return out
	}
	named := !s.open && (s.closed() || len(path) == 0)
	for i := range n.children {
		if len(out) == maxFields {
			break
		}
		c := &n.children[i]
		seg, sub := c.key, s.member(c.key)
		switch {
		case n.kind == arrayKind:
			seg, sub = strconv.Itoa(i), s.item()
		case named && s.props[c.key] == nil:
			out = append(out, unknownField{dotted(join(path, c.key)), c.key, s.names})
			continue
		}
		if len(c.children) > 0 {
			out = sub.unknown(c, join(path, seg), out)
		}
	}
	return out
}

// message suggests the most similar known field.
func (u unknownField) message() string {
	if len(u.known) == 0 {
		return "Unknown field. This object has no fields."
	}
	nearest, least := "", maxNameLength+1
	for _, name := range u.known {
		if d := distance(u.key, name); d < least {
			nearest, least = name, d
		}
	}
	return "Unknown field. The closest match is " + nearest + "."
}

// maxNameLength limits the number of characters that distance compares.
const maxNameLength = 64

// distance returns the optimal string alignment distance, ignoring case: the number of characters to add, drop, change or swap.
func distance(a, b string) int {
	x, y := letters(a), letters(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row[0] = i + 1
		for j := range y {
			change := last[j]
			if x[i] != y[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}

func letters(s string) []rune {
	r := []rune(strings.ToLower(s))
	return r[:min(len(r), maxNameLength)]
}
