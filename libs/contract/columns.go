package contract

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/yamldoc"
)

// Column is a property of a list's item as CSV: one column, or the columns of its own properties.
type Column struct {
	Name       string
	Expand     bool     // x-expand: it exists only when the request expands it
	Properties []Column // of an object with declared properties; otherwise the value is one cell
}

// columns reads the columns of a list that supports text/csv.
func (l *loader) columns(op *Operation, csv, list *yaml.Node) error {
	if csv == nil {
		return nil
	}
	list, _, err := l.Follow(list, "")
	if err != nil {
		return err
	}
	item := yamldoc.Child(yamldoc.Child(yamldoc.Child(list, "properties"), "data"), "items")
	if item == nil {
		return errors.New("text/csv needs a list whose items are in data")
	}
	op.CSV, err = l.properties(item, 0)
	if err == nil && len(op.CSV) == 0 {
		err = errors.New("text/csv needs items that name their properties")
	}
	if err != nil {
		return err
	}
	return arrange(op.CSV, yamldoc.Child(csv, "x-columns"))
}

// arrange puts columns in the order of x-columns, which names each of them. Programs read columns by position, so the order does not
// follow that of the properties.
func arrange(columns []Column, order *yaml.Node) error {
	var names []string
	if order != nil {
		if err := order.Decode(&names); err != nil {
			return fmt.Errorf("x-columns: %w", err)
		}
	}
	place := func(c Column) int { return slices.Index(names, c.Name) }
	for _, c := range columns {
		if place(c) < 0 {
			return fmt.Errorf("x-columns lacks %s", c.Name)
		}
	}
	if len(names) != len(columns) {
		return fmt.Errorf("x-columns has %d names for %d properties", len(names), len(columns))
	}
	slices.SortStableFunc(columns, func(a, b Column) int { return cmp.Compare(place(a), place(b)) })
	return nil
}

// maxNesting is far deeper than any resource. It stops at a schema that contains itself.
const maxNesting = 10

// properties returns the columns of an object's properties and of its alternatives, in the order of the document. Arrays and
// objects with arbitrary names have none.
func (l *loader) properties(n *yaml.Node, depth int) ([]Column, error) {
	if depth > maxNesting {
		return nil, errors.New("the item of text/csv contains itself")
	}
	n, _, err := l.Follow(n, "")
	if err != nil {
		return nil, err
	}
	var out []Column
	for name, node := range yamldoc.Pairs(yamldoc.Child(n, "properties")) {
		sub, err := l.properties(node, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, Column{Name: name, Expand: yamldoc.Text(node, "x-expand") == "true", Properties: sub})
	}
	err = l.Alternatives(n, func(alt *yaml.Node) error {
		more, err := l.properties(alt, depth+1)
		for _, c := range more {
			if !slices.ContainsFunc(out, func(known Column) bool { return known.Name == c.Name }) {
				out = append(out, c)
			}
		}
		return err
	})
	return out, err
}

// Filters returns the names of the parameters that narrow a list.
func (op *Operation) Filters() []string {
	var out []string
	for _, p := range op.params {
		if slices.Contains([]string{"limit", "cursor", "sort", "expand"}, p.name) {
			continue
		}
		if p.kind == "object" {
			out = append(out, p.name+"[key]")
		} else {
			out = append(out, p.name)
		}
	}
	return out
}
