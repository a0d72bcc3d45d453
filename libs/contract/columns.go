package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/yamldoc"
)

// Column is a property of a list's item as CSV: one column, or the columns of its own properties. A column that no property has shows
// another form of the property Of.
type Column struct {
	Name       string
	Expand     bool     // x-expand: it exists only when the request expands it
	Properties []Column // of an object with declared properties; otherwise the value is one cell

	Of   string // "": the column is a property
	Form Form
}

// Form is the form of a derived column, which is the suffix of its name.
type Form string

// Forms of derived columns.
const (
	Decimal Form = "_decimal" // the amount of a Money, such as 12.50
	Local   Form = "_local"   // a date and time in the local time zone, such as 2027-07-03 09:00:00
	Name    Form = "_name"    // the name of the resource whose id is in the property with the suffix _id
)

// forms contains the forms that follow from the property alone.
var forms = []Form{Decimal, Local}

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
	op.CSV, err = arrange(op.CSV, yamldoc.Child(csv, "x-columns"))
	return err
}

// arrange returns columns in the order of x-columns, which names each of them, and the derived columns that it names. Programs read
// columns by position, so the order does not follow that of the properties.
func arrange(columns []Column, order *yaml.Node) ([]Column, error) {
	var names []string
	if order != nil {
		if err := order.Decode(&names); err != nil {
			return nil, fmt.Errorf("x-columns: %w", err)
		}
	}
	for _, c := range columns {
		if !slices.Contains(names, c.Name) {
			return nil, fmt.Errorf("x-columns lacks %s", c.Name)
		}
	}
	out := make([]Column, len(names))
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("x-columns repeats %s", name)
		}
		c, ok := column(columns, name)
		if !ok {
			c, ok = derive(columns, name)
		}
		if !ok {
			return nil, fmt.Errorf("x-columns: %s is not a property, and cannot be derived from one", name)
		}
		out[i] = c
	}
	return out, nil
}

func column(columns []Column, name string) (Column, bool) {
	i := slices.IndexFunc(columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return Column{}, false
	}
	return columns[i], true
}

// derive returns the column with the name of a property and the suffix of a form.
func derive(columns []Column, name string) (Column, bool) {
	if base, found := strings.CutSuffix(name, string(Name)); found {
		of, ok := column(columns, base+"_id")
		return Column{Name: name, Of: of.Name, Form: Name}, ok && of.Properties == nil
	}
	for _, form := range forms {
		base, found := strings.CutSuffix(name, string(form))
		if !found {
			continue
		}
		of, ok := column(columns, base)
		_, amount := column(of.Properties, "amount")
		_, currency := column(of.Properties, "currency")
		return Column{Name: name, Of: base, Form: form}, ok && !of.Expand && amount == (form == Decimal) && currency == amount
	}
	return Column{}, false
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
