package pg

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Columns are the columns that writes of a table set, without tenant and mode. The statements of a table follow from the names of its
// arguments, so a new column is one line among these.
type Columns []string

// Columns returns the names of the arguments in alphabetical order.
func (a Args) Columns() Columns { return slices.Sorted(maps.Keys(a)) }

// Of lists the columns of a table that has an alias, for a select: u.id, u.name.
func (c Columns) Of(alias string) string { return c.join(alias + ".%[1]s") }

// Names lists the columns for an insert: id, name.
func (c Columns) Names() string { return c.join("%[1]s") }

// Values lists the arguments in the same order: @id, @name.
func (c Columns) Values() string { return c.join("@%[1]s") }

// Insert is the statement that inserts a row of the caller's tenant and mode into a table.
func (c Columns) Insert(table, alias string) string {
	return fmt.Sprintf(`insert into %s as %s (tenant_id, livemode, %s) values (@tenant, @live, %s)`, table, alias, c.Names(), c.Values())
}

// Set assigns the arguments to the columns except the id, for an update: name = @name.
func (c Columns) Set() string { return c.changeable().join("%[1]s = @%[1]s") }

// Replace assigns the columns of a row that could not be inserted, except the id, for "on conflict do update set": name = excluded.name.
func (c Columns) Replace() string { return c.changeable().join("%[1]s = excluded.%[1]s") }

func (c Columns) changeable() Columns {
	return slices.DeleteFunc(slices.Clone(c), func(name string) bool { return name == "id" })
}

func (c Columns) join(format string) string {
	parts := make([]string, len(c))
	for i, name := range c {
		parts[i] = fmt.Sprintf(format, name)
	}
	return strings.Join(parts, ", ")
}
