package pg

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Columns are the columns that writes to a table set, without tenant and mode. The statements of a table are built from the names
// of its arguments, so a new column needs only one line there.
type Columns []string

// Columns returns the names of the arguments in alphabetical order.
func (a Args) Columns() Columns { return slices.Sorted(maps.Keys(a)) }

// Of returns the columns of a table with an alias, for a select: u.id, u.name.
func (c Columns) Of(alias string) string { return c.join(alias + ".%[1]s") }

// Names returns the columns for an insert: id, name.
func (c Columns) Names() string { return c.join("%[1]s") }

// Values returns the arguments in the same order: @id, @name.
func (c Columns) Values() string { return c.join("@%[1]s") }

// Insert returns the statement that inserts a row of the caller's tenant and mode into a table.
func (c Columns) Insert(table, alias string) string {
	return fmt.Sprintf(`insert into %s as %s (tenant_id, livemode, %s) values (@tenant, @live, %s)`, table, alias, c.Names(), c.Values())
}

// Set returns assignments of the arguments to the columns except the id, for an update: name = @name.
func (c Columns) Set() string { return c.changeable().join("%[1]s = @%[1]s") }

// Replace returns assignments of the columns of a conflicting row, except the id, for "on conflict do update set": name =
// excluded.name.
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
