package command

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/cli/internal/operations"
	"holdfast.dev/sdks/cli/internal/output"
	"holdfast.dev/sdks/cli/internal/profile"
)

// defaultColumns are the columns of the tables whose most important ones do not follow from the contract, by the path of the list.
var defaultColumns = map[string][]string{
	"/availability": slotColumns,
	"/bookings":     {"id", "status", "customer", "starts", "ends", "unit", "total_amount", "amount_due", "number", "payment_status"},
	"/invoices":     {"id", "status", "customer", "total_amount", "amount_due", "due_at", "number", "kind", "overdue", "created_at"},
	"/leads":        {"id", "status", "first_name", "last_name", "event_local_date", "unit", "guest_count", "email", "phone", "source"},
	"/quotes":       {"id", "status", "customer", "starts", "ends", "unit", "total_amount", "expires_at", "number", "booking_status"},
}

// The scopes that the names of a row need.
const (
	readCustomers = "read:customers"
	readUnits     = "read:units"
)

// unitPages is the maximum number of pages of 100 units that a table reads to show their names. It shows the IDs of further units.
const unitPages = 10

// listTable writes the rows of a list as a table: with names instead of IDs, in the tenant's local time, and with a row per slot of a day.
type listTable struct {
	op      operations.Operation
	session *profile.Session
	table   *output.Table
	units   map[string]json.RawMessage // the names of units by ID; nil until they are needed
	named   bool                       // a column shows the names of units
}

// known returns the columns that a table of the operation can have, without those of inner objects.
func known(op operations.Operation) []string {
	columns := append(slices.Sorted(maps.Keys(operations.Objects[op.Item])), computed(op)...)
	return slices.DeleteFunc(columns, func(name string) bool { return op.Path == availabilityPath && name == "units" }) // each slot has one
}

// computed returns the columns that are not properties of the rows.
func computed(op operations.Operation) []string {
	properties := operations.Objects[op.Item]
	var columns []string
	if op.Path == availabilityPath {
		return slices.DeleteFunc(slices.Clone(slotColumns), func(name string) bool { return properties[name] != nil })
	}
	if _, ok := properties["unit_id"]; ok {
		columns = append(columns, "unit")
	}
	if _, ok := properties["event_start_time"]; ok {
		columns = append(columns, "starts", "ends")
	}
	return columns
}

// checkColumns returns an error that lists the valid columns if a column does not exist.
func checkColumns(op operations.Operation, columns []string) error {
	for _, column := range columns {
		all := known(op)
		name, _, nested := strings.Cut(column, ".")
		if slices.Contains(all, name) && (!nested || column == "unit.name" || hasProperty([]string{op.Item}, column)) {
			continue
		}
		return usagef("--columns: there is no column %q%s\nThe columns are %s. Those of an object have a dot, such as price.currency.", column, suggest(column, all), strings.Join(all, ", "))
	}
	return nil
}

// hasProperty reports whether one of the schemas has a property, or an object in it: customer.name.
func hasProperty(schemas []string, path string) bool {
	name, rest, nested := strings.Cut(path, ".")
	for _, schema := range schemas {
		if schema == "*" {
			return true
		}
		inner, ok := operations.Objects[schema][name]
		if ok && (!nested || hasProperty(inner, rest)) {
			return true
		}
	}
	return false
}

// newTable returns the table of a list, and makes the request return what its columns show. Without --columns, it leaves out names that the
// credential must not read.
func (c *call) newTable(ctx context.Context, s *profile.Session, request *holdfast.Request) (*listTable, error) {
	columns := c.columns
	if len(columns) == 0 {
		var err error
		if columns, err = c.defaults(ctx, s); err != nil {
			return nil, err
		}
	}
	t := &listTable{op: c.op, session: s, table: output.NewTable(c.app.Out, columns, c.columns)}
	for _, column := range columns {
		name, _, _ := strings.Cut(column, ".")
		if name == "unit" && c.op.Path != availabilityPath {
			t.named = true
		}
		expand(request.Query, c.op, name)
	}
	return t, nil
}

// defaults returns the columns to show if the user chose none.
func (c *call) defaults(ctx context.Context, s *profile.Session) ([]string, error) {
	columns, ok := defaultColumns[c.op.Path]
	if !ok {
		return c.op.Columns, nil
	}
	needs := map[string]string{"customer": readCustomers, "unit": readUnits}
	if c.op.Path == availabilityPath || !slices.ContainsFunc(columns, func(name string) bool { return needs[name] != "" }) {
		return columns, nil
	}
	me, err := s.Me.Get(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(columns), func(name string) bool {
		return needs[name] != "" && !slices.Contains(me.Scopes, needs[name])
	}), nil
}

// expand adds a related object to the rows of a response, if the operation can do so.
func expand(query url.Values, op operations.Operation, name string) {
	for _, p := range op.QueryParams {
		if p.Name != "expand" || !slices.Contains(p.Values, name) {
			continue
		}
		all := strings.FieldsFunc(query.Get(p.Name), func(r rune) bool { return r == ',' })
		if !slices.Contains(all, name) {
			query.Set(p.Name, strings.Join(append(all, name), ","))
		}
	}
}

// rows writes rows.
func (t *listTable) rows(ctx context.Context, data []json.RawMessage) error {
	var all []json.RawMessage
	for _, text := range data {
		if t.op.Path == availabilityPath {
			slots, err := slotRows(text)
			if err != nil {
				return err
			}
			all = append(all, slots...)
			continue
		}
		row, err := t.row(ctx, text)
		if err != nil {
			return err
		}
		all = append(all, row)
	}
	return t.table.Rows(all)
}

// row returns a row with its computed columns.
func (t *listTable) row(ctx context.Context, text json.RawMessage) (json.RawMessage, error) {
	if len(computed(t.op)) == 0 {
		return text, nil
	}
	var row map[string]json.RawMessage
	if err := json.Unmarshal(text, &row); err != nil {
		return nil, fmt.Errorf("the row is not an object: %w", err)
	}
	if id := output.Scalar(row["unit_id"]); t.named && id != "" {
		name, err := t.unit(ctx, id)
		if err != nil {
			return nil, err
		}
		row["unit"] = name
	}
	day, end := output.Scalar(row["event_local_date"]), output.Scalar(row["event_local_end_date"])
	if end == day {
		end = ""
	}
	row["starts"] = joined(day, output.Scalar(row["event_start_time"]))
	row["ends"] = joined(end, output.Scalar(row["event_end_time"]))
	return json.Marshal(row)
}

// joined returns the texts that are not empty, separated by spaces, as JSON.
func joined(texts ...string) json.RawMessage {
	text, _ := json.Marshal(strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), " ")) // a string
	return text
}

// unit returns an object with the name of a unit, or with its ID if the tenant has too many units.
func (t *listTable) unit(ctx context.Context, id string) (json.RawMessage, error) {
	if t.units == nil {
		t.units = map[string]json.RawMessage{}
		if err := t.readUnits(ctx); err != nil {
			return nil, err
		}
	}
	if name, ok := t.units[id]; ok {
		return name, nil
	}
	return json.Marshal(map[string]string{"name": id})
}

// readUnits gets the names of the units.
func (t *listTable) readUnits(ctx context.Context) error {
	request := holdfast.Request{Method: http.MethodGet, Path: "/units", Query: url.Values{"limit": {"100"}}}
	pages := 0
	return eachPage(ctx, t.session, request, func(_ []byte, p page) (bool, error) {
		for _, text := range p.Data {
			var unit struct {
				ID   string `json:"id"`
				Name string `json:"name"`
			}
			if err := json.Unmarshal(text, &unit); err != nil {
				return false, fmt.Errorf("the row is not a unit: %w", err)
			}
			name, err := json.Marshal(map[string]string{"name": unit.Name})
			if err != nil {
				return false, err
			}
			t.units[unit.ID] = name
		}
		pages++
		return pages < unitPages, nil
	})
}
