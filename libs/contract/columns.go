package contract

import (
	"errors"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Column is a property of a list's item as CSV: one column, or the columns of its own properties.
type Column struct {
	Name       string
	Expand     bool     // x-expand: it exists only when the request asks for it
	Properties []Column // of an object that names its properties; else the value is one cell
}

// columns reads the columns of a list that has the media type text/csv.
func (l *loader) columns(op *Operation, csv, list *yaml.Node) error {
	if csv == nil {
		return nil
	}
	list, _, err := l.follow(list, "")
	if err != nil {
		return err
	}
	item := child(child(child(list, "properties"), "data"), "items")
	if item == nil {
		return errors.New("text/csv needs a list whose items are in data")
	}
	op.CSV, err = l.properties(item, 0)
	if err == nil && len(op.CSV) == 0 {
		err = errors.New("text/csv needs items that name their properties")
	}
	return err
}

// maxNesting is far more than resources nest; it ends a schema that contains itself.
const maxNesting = 10

// properties returns the columns of an object's properties and of its alternatives, in the order of the document. It has
// none for arrays and for objects with any names.
func (l *loader) properties(n *yaml.Node, depth int) ([]Column, error) {
	if depth > maxNesting {
		return nil, errors.New("the item of text/csv contains itself")
	}
	n, _, err := l.follow(n, "")
	if err != nil {
		return nil, err
	}
	var out []Column
	for name, node := range pairs(child(n, "properties")) {
		sub, err := l.properties(node, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, Column{Name: name, Expand: text(node, "x-expand") == "true", Properties: sub})
	}
	err = l.alternatives(n, func(alt *yaml.Node) error {
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
