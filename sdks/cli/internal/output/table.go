package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/bojanz/currency"
	"github.com/mattn/go-runewidth"
)

// The form of tables.
const (
	gap         = 2  // spaces between columns
	widest      = 40 // the maximum width of a cell on a terminal
	mostColumns = 10 // if the user selected none
)

// Table writes rows with the columns that fit on the terminal. The first rows determine the widths, so that later pages need no memory.
type Table struct {
	to      Stream
	columns []string
	widths  []int // nil until the first rows
	all     bool  // the user selected the columns
}

// NewTable returns a table. If selected is empty, it shows those of columns that fit.
func NewTable(to Stream, columns, selected []string) *Table {
	if len(selected) > 0 {
		return &Table{to: to, columns: selected, all: true}
	}
	return &Table{to: to, columns: columns[:min(len(columns), mostColumns)]}
}

// Rows writes rows. It writes the header before the first ones.
func (t *Table) Rows(rows []json.RawMessage) error {
	cells := make([][]string, len(rows))
	for i, row := range rows {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(row, &object); err != nil {
			return fmt.Errorf("the row is not an object: %w", err)
		}
		for _, column := range t.columns {
			cells[i] = append(cells[i], t.cell(lookup(object, column)))
		}
	}
	if t.widths == nil {
		t.measure(cells)
		header := make([]string, len(t.widths))
		for i := range t.widths {
			header[i] = strings.ToUpper(t.columns[i])
		}
		if err := t.line(header, Bold); err != nil {
			return err
		}
	}
	for _, row := range cells {
		if err := t.line(row, ""); err != nil {
			return err
		}
	}
	return nil
}

// cell returns a value in one line.
func (t *Table) cell(value json.RawMessage) string {
	text := strings.NewReplacer("\n", " ", "\r", " ", "\t", " ").Replace(Scalar(value))
	if !t.to.Terminal {
		return text
	}
	if text = Visible(text); t.all {
		return text
	}
	return runewidth.Truncate(text, widest, "…")
}

// measure sets the widths of the columns, and leaves out those that do not fit.
func (t *Table) measure(rows [][]string) {
	left := t.to.Width
	for i, name := range t.columns {
		width := runewidth.StringWidth(name)
		for _, row := range rows {
			width = max(width, runewidth.StringWidth(row[i]))
		}
		if left -= width; t.to.Width > 0 && left < 0 && i > 0 && !t.all {
			return
		}
		left -= gap
		t.widths = append(t.widths, width)
	}
}

// line writes the cells of a row, without spaces at its end.
func (t *Table) line(cells []string, style string) error {
	var text strings.Builder
	for i, width := range t.widths {
		cell := cells[i]
		if i < len(t.widths)-1 {
			cell = runewidth.FillRight(cell, width+gap)
			if !strings.HasSuffix(cell, " ") { // a later row can be wider than the first ones
				cell += " "
			}
		}
		text.WriteString(cell)
	}
	_, err := io.WriteString(t.to, t.to.Style(style, strings.TrimRight(text.String(), " "))+"\n")
	return err
}

// lookup returns the value of a property, or of one of an object in it: customer.name.
func lookup(object map[string]json.RawMessage, path string) json.RawMessage {
	name, rest, nested := strings.Cut(path, ".")
	value := object[name]
	if !nested {
		return value
	}
	var inner map[string]json.RawMessage
	if json.Unmarshal(value, &inner) != nil {
		return nil
	}
	return lookup(inner, rest)
}

// Scalar returns a value as text for people: an amount as 25.00 USD, an object by its name, and nothing for null. Lists and other objects
// are JSON.
func Scalar(value json.RawMessage) string {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || string(value) == "null" {
		return ""
	}
	switch value[0] {
	case '"':
		var text string
		_ = json.Unmarshal(value, &text) // the document was valid
		return text
	case '{':
		if text, ok := amount(value); ok {
			return text
		}
		var object struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(value, &object) == nil && object.Name != "" {
			return object.Name
		}
	case '[':
		var texts []string
		if json.Unmarshal(value, &texts) == nil {
			return strings.Join(texts, ", ")
		}
	}
	return string(value)
}

// amount returns an amount of money in the unit of its currency.
func amount(value json.RawMessage) (string, bool) {
	var fields map[string]json.RawMessage
	var money struct {
		Amount   json.Number `json:"amount"`
		Currency string      `json:"currency"`
	}
	if json.Unmarshal(value, &fields) != nil || len(fields) != 2 || json.Unmarshal(value, &money) != nil {
		return "", false
	}
	minor, err := strconv.ParseInt(money.Amount.String(), 10, 64)
	if err != nil || money.Currency == "" {
		return "", false
	}
	a, err := currency.NewAmountFromInt64(minor, money.Currency)
	if err != nil { // a currency that the library does not know
		return money.Amount.String() + " " + money.Currency, true
	}
	return a.String(), true
}

// Object writes the properties of an object, one per line. Those of inner objects have the path as their name.
func Object(to Stream, document []byte) error {
	pairs, err := flatten("", document)
	if err != nil {
		return err
	}
	width := 0
	for _, p := range pairs {
		width = max(width, runewidth.StringWidth(p[0]))
	}
	for _, p := range pairs {
		value := strings.ReplaceAll(p[1], "\n", "\n"+strings.Repeat(" ", width+gap))
		if to.Terminal {
			value = Visible(value)
		}
		line := to.Style(Bold, p[0]) + strings.Repeat(" ", width+gap-runewidth.StringWidth(p[0])) + value
		if _, err := io.WriteString(to, strings.TrimRight(line, " ")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// flatten returns the names and values of an object in the order of the document.
func flatten(prefix string, document []byte) ([][2]string, error) {
	d := json.NewDecoder(bytes.NewReader(document))
	open, err := d.Token()
	if err != nil {
		return nil, err
	}
	if open != json.Delim('{') {
		return nil, errors.New("the response is not an object")
	}
	var all [][2]string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		name, _ := key.(string)
		inner, err := values(prefix+name, value)
		if err != nil {
			return nil, err
		}
		all = append(all, inner...)
	}
	return all, nil
}

// values returns the lines of a property.
func values(name string, value json.RawMessage) ([][2]string, error) {
	if _, money := amount(value); !money && value[0] == '{' {
		inner, err := flatten(name+".", value)
		if err != nil || len(inner) > 0 {
			return inner, err
		}
		return [][2]string{{name, ""}}, nil
	}
	var rows []json.RawMessage
	if json.Unmarshal(value, &rows) == nil && len(rows) > 0 && rows[0][0] == '{' {
		var all [][2]string
		for i, row := range rows {
			inner, err := values(name+"."+strconv.Itoa(i), row)
			if err != nil {
				return nil, err
			}
			all = append(all, inner...)
		}
		return all, nil
	}
	return [][2]string{{name, Scalar(value)}}, nil
}
