package page

import (
	"fmt"
	"strconv"
	"time"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/money"
)

// derived is a column that shows another form of a property. Its numbers are indexes of cells.
type derived struct {
	form     contract.Form
	cell     int
	of       int // the property, or the amount of a Money
	currency int // of a Money
	zone     int // the time zone of the row; -1 if it has none
}

// derive returns the derived column c of the object.
func (f *fields) derive(c contract.Column) derived {
	d := derived{form: c.Form, cell: f.cells[quoted(c.Name)], zone: -1}
	if c.Form == contract.Decimal {
		d.of, d.currency = f.objects[quoted(c.Of)].cells[`"amount"`], f.objects[quoted(c.Of)].cells[`"currency"`]
		return d
	}
	d.of = f.cells[quoted(c.Of)]
	if zone, ok := f.cells[`"timezone"`]; ok {
		d.zone = zone
	}
	return d
}

// derive fills the cells of the derived columns of the current row. Their text is never that of a formula.
func (t *table) derive() (err error) {
	for _, d := range t.derived {
		value := t.cells[d.of]
		switch {
		case len(value) == 0 || value[0] == 'n':
		case d.form == contract.Decimal:
			t.cells[d.cell], err = decimal(value, t.cells[d.currency])
		default:
			t.cells[d.cell], err = t.local(d, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decimal returns an amount with the decimals of its currency in ISO 4217.
func decimal(amount, currency []byte) ([]byte, error) {
	minor, err := strconv.ParseInt(string(amount), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("amount: %w", err)
	}
	decimals, err := money.Decimals(unquoted(currency))
	if err != nil {
		return nil, err
	}
	return []byte(money.Amount{Minor: minor}.Decimal(decimals)), nil
}

// local returns a time in the time zone of the row, in a format that spreadsheets read as a date and a time.
func (t *table) local(d derived, value []byte) ([]byte, error) {
	at, err := time.Parse(time.RFC3339, unquoted(value))
	if err != nil {
		return nil, fmt.Errorf("local time: %w", err)
	}
	zone := t.zone
	if d.zone >= 0 {
		if zone, err = civil.Location(unquoted(t.cells[d.zone])); err != nil {
			return nil, err
		}
	}
	return at.In(zone).AppendFormat(nil, time.DateTime), nil
}

// unquoted returns the text of a JSON string without escapes, such as a time, a currency or a time zone.
func unquoted(value []byte) string {
	if len(value) < 2 {
		return ""
	}
	return string(value[1 : len(value)-1])
}
