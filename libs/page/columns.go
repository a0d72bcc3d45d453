package page

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"holdfast.dev/libs/contract"
)

// table is the columns of one CSV answer.
type table struct {
	names []string
	row   *fields
}

// fields are the columns of one object, by the names of its properties.
type fields struct {
	cells   map[string]int // index of the property's cell
	objects map[string]*fields
}

// newTable lays the columns out in the contract's order, with the expanded resources that the request asks for.
func newTable(columns []contract.Column, expand []string) *table {
	t := &table{}
	t.row = t.add("", columns, expand)
	return t
}

func (t *table) add(prefix string, columns []contract.Column, expand []string) *fields {
	f := &fields{cells: map[string]int{}, objects: map[string]*fields{}}
	for _, c := range columns {
		switch {
		case c.Expand && !slices.Contains(expand, c.Name):
		case c.Properties == nil:
			f.cells[c.Name] = len(t.names)
			t.names = append(t.names, prefix+c.Name)
		default:
			f.objects[c.Name] = t.add(prefix+c.Name+".", c.Properties, nil)
		}
	}
	return f
}

// appendHeader appends the names of the columns as a record.
func (t *table) appendHeader(out []byte) []byte {
	for i, name := range t.names {
		out = appendCell(out, i, []byte(name))
	}
	return append(out, "\r\n"...)
}

// appendRow appends the record of a body. A property that is null or absent is an empty cell.
func (t *table) appendRow(out, body []byte) ([]byte, error) {
	cells := make([][]byte, len(t.names))
	if err := t.row.fill(cells, jsontext.NewDecoder(bytes.NewReader(body))); err != nil {
		return out, fmt.Errorf("row as CSV: %w", err)
	}
	for i, cell := range cells {
		out = appendCell(out, i, cell)
	}
	return append(out, "\r\n"...), nil
}

// fill reads an object, or null, into the cells of its properties.
func (f *fields) fill(cells [][]byte, d *jsontext.Decoder) error {
	if start, err := d.ReadToken(); err != nil || start.Kind() != '{' {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		if object := f.objects[key]; object != nil {
			if err := object.fill(cells, d); err != nil {
				return err
			}
			continue
		}
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if i, known := f.cells[key]; known {
			if cells[i], err = cell(value); err != nil {
				return err
			}
		}
	}
	_, err := d.ReadToken()
	return err
}

// FormulaStarts are the characters with which a text begins that a spreadsheet may take for a formula: full-width forms count
// in some languages, and a tab or a line end is skipped.
const FormulaStarts = "=+-@＝＋－＠\t\r\n"

// cell is the text of a value: a number, true, false, an array and an object as JSON. A text that a spreadsheet would take
// for a formula gets a leading '.
func cell(value jsontext.Value) ([]byte, error) {
	switch value.Kind() {
	case 'n':
		return nil, nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		if first, _ := utf8.DecodeRune(text); err == nil && strings.ContainsRune(FormulaStarts, first) {
			text = append([]byte{'\''}, text...)
		}
		return text, err
	default:
		return bytes.Clone(value), nil
	}
}

// appendCell appends cell number i of a record as RFC 4180 says. encoding/csv is not used because, with the line ends of
// RFC 4180, it changes line breaks within a cell.
func appendCell(out []byte, i int, text []byte) []byte {
	if i > 0 {
		out = append(out, ',')
	}
	if !bytes.ContainsAny(text, ",\"\r\n") && (len(text) == 0 || text[0] != ' ') {
		return append(out, text...)
	}
	out = append(out, '"')
	out = append(out, bytes.ReplaceAll(text, []byte(`"`), []byte(`""`))...)
	return append(out, '"')
}
