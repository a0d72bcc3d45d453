package page

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"holdfast.dev/libs/contract"
)

// table contains the columns of one CSV response, and the buffers of the current row. Only one goroutine uses it.
type table struct {
	names   []string
	row     *fields
	derived []derived
	zone    *time.Location // of local times, if the row has no time zone of its own

	cells [][]byte // the values as JSON, each a part of the body; nil: absent
	body  bytes.Buffer
	read  jsontext.Decoder
	text  []byte // of one cell
}

// fields are the columns of one object, keyed by the names of its properties as JSON strings.
type fields struct {
	cells   map[string]int // index of the property's cell
	objects map[string]*fields
}

// newTable arranges the columns in the order of the contract, including the resources that the request expands. Rows without a time
// zone show local times in zone.
func newTable(columns []contract.Column, expand []string, zone *time.Location) *table {
	t := &table{zone: zone}
	t.row = t.add("", columns, expand)
	t.cells = make([][]byte, len(t.names))
	for _, c := range columns {
		if c.Of != "" && c.Form != contract.Name { // the body of the row contains names
			t.derived = append(t.derived, t.row.derive(c))
		}
	}
	return t
}

func (t *table) add(prefix string, columns []contract.Column, expand []string) *fields {
	f := &fields{cells: map[string]int{}, objects: map[string]*fields{}}
	for _, c := range columns {
		switch {
		case c.Expand && !slices.Contains(expand, c.Name):
		case c.Properties == nil:
			f.cells[quoted(c.Name)] = len(t.names)
			t.names = append(t.names, prefix+c.Name)
		default:
			f.objects[quoted(c.Name)] = t.add(prefix+c.Name+".", c.Properties, nil)
		}
	}
	return f
}

// quoted returns a name of the contract as a JSON string. Such names contain no character that must be escaped.
func quoted(name string) string { return `"` + name + `"` }

// appendHeader appends the names of the columns as a record.
func (t *table) appendHeader(out []byte) []byte {
	for i, name := range t.names {
		out = appendCell(out, i, []byte(name))
	}
	return append(out, "\r\n"...)
}

// appendRow appends the record of a body. A property that is null or absent becomes an empty cell.
func (t *table) appendRow(out, body []byte) ([]byte, error) {
	clear(t.cells)
	t.body = *bytes.NewBuffer(body)                           // the decoder does not copy it
	t.read.Reset(&t.body, jsontext.AllowDuplicateNames(true)) // the encoder repeats no name
	if err := t.row.fill(t.cells, &t.read, body); err != nil {
		return out, fmt.Errorf("row as CSV: %w", err)
	}
	if err := t.derive(); err != nil {
		return out, fmt.Errorf("row as CSV: %w", err)
	}
	for i, value := range t.cells {
		text, err := t.cell(value)
		if err != nil {
			return out, fmt.Errorf("row as CSV: %w", err)
		}
		out = appendCell(out, i, text)
	}
	return append(out, "\r\n"...), nil
}

// fill reads an object, or null, into the cells of its properties.
func (f *fields) fill(cells [][]byte, d *jsontext.Decoder, body []byte) error {
	if start, err := d.ReadToken(); err != nil || start.Kind() != '{' {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return err
		}
		if object := f.objects[string(name)]; object != nil {
			if err := object.fill(cells, d, body); err != nil {
				return err
			}
			continue
		}
		i, known := f.cells[string(name)]
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if known { // value itself is only valid until the next call
			end := int(d.InputOffset())
			cells[i] = body[end-len(value) : end]
		}
	}
	_, err := d.ReadToken()
	return err
}

// FormulaStarts are the first characters of texts that a spreadsheet may interpret as a formula. Full-width forms count in some
// languages, and spreadsheets skip a leading tab or line end.
const FormulaStarts = "=+-@＝＋－＠\t\r\n"

// cell returns the text of a value, valid until the next call. Numbers, true, false, arrays and objects are JSON. A text that a
// spreadsheet would interpret as a formula gets a leading '.
func (t *table) cell(value jsontext.Value) (text []byte, err error) {
	switch {
	case len(value) == 0 || value[0] == 'n':
		return nil, nil
	case value[0] != '"':
		return value, nil
	case bytes.IndexByte(value, '\\') < 0:
		text = value[1 : len(value)-1]
	default:
		t.text, err = jsontext.AppendUnquote(t.text[:0], value)
		text = t.text
	}
	if first, _ := utf8.DecodeRune(text); len(text) > 0 && strings.ContainsRune(FormulaStarts, first) {
		text = append([]byte{'\''}, text...)
	}
	return text, err
}

// appendCell appends cell number i of a record as specified in RFC 4180. encoding/csv is not used because, with the line ends of
// RFC 4180, it changes line breaks within a cell.
func appendCell(out []byte, i int, text []byte) []byte {
	if i > 0 {
		out = append(out, ',')
	}
	if !bytes.ContainsAny(text, ",\"\r\n") && (len(text) == 0 || text[0] != ' ') {
		return append(out, text...)
	}
	out = append(out, '"')
	for {
		quote := bytes.IndexByte(text, '"')
		if quote < 0 {
			break
		}
		out = append(append(out, text[:quote+1]...), '"')
		text = text[quote+1:]
	}
	return append(append(out, text...), '"')
}
