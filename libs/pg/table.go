package pg

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// F is a list of columns with the variables that hold their values: name, pointer, name, pointer, … A row is scanned into the
// pointers, and the arguments of a statement are read from them. JSON, Raw, Null and Array adapt values whose zero pgx would write in
// another way.
type F []any

// Args returns the columns by name.
func (f F) Args() Args {
	args := make(Args, len(f)/2+2)
	args.add(f)
	return args
}

func (a Args) add(f F) {
	for i := 0; i < len(f); i += 2 {
		a[f[i].(string)] = f[i+1] //nolint:forcetypeassert // see names
	}
}

// Names returns the names in a format, such as "@%s".
func (f F) Names(format string) string { return each(names(f), format) }

// Set returns assignments of the arguments to the columns: id = @id, name = @name.
func (f F) Set() string { return each(names(f), "%[1]s = @%[1]s") }

func each(names []string, format string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = fmt.Sprintf(format, name)
	}
	return strings.Join(out, ", ")
}

// Fields are the columns of a table. Each column is named once. The tenant and the mode are not among them.
type Fields struct {
	Fixed   F            // written by an insert only; the first one is the key
	Values  F            // written by an insert and an update
	Written F            // like Values, but not read
	Read    F            // not written; an expression instead of a name has an alias, such as "count(*) as n"
	Done    func() error // completes a row that was scanned; nil: nothing to do
}

// Table describes how values of T are stored. The statements, the scan and the arguments follow from one list of fields. Every value
// belongs to the caller's tenant and mode.
type Table[T any] struct {
	Columns string // for a select: u.id, u.name
	Select  string // "select u.id, u.name from units u "
	Own     string // "select u.id, u.name from units u where u.tenant_id = @tenant and u.livemode = @live and "
	Update  string // the statement that writes Values and Written of the row with the id, with the next version; it returns Stamp
	Set     string // assignments of the arguments to Values and Written
	Stamp   string // " returning u.version, u.created_at, u.updated_at"

	name, alias      string
	key              string
	inserted, update []string
	others           bool // it has columns from other tables
	missing          error
	fields           func(*T) Fields
	rows             sync.Pool // of *scanned[T]
}

// scanned is a value with the pointers that a row is scanned into.
type scanned[T any] struct {
	value T
	to    []any
	done  func() error
}

// NewTable describes a table. missing is the error for a row that does not exist. fields returns the fields of a value.
func NewTable[T any](name, alias string, missing error, fields func(*T) Fields) *Table[T] {
	t := &Table[T]{name: name, alias: alias, missing: missing, fields: fields}
	t.rows.New = func() any {
		s := &scanned[T]{}
		f := fields(&s.value)
		s.to, s.done = pointers(f.Fixed, f.Values, f.Read), f.Done
		return s
	}
	var zero T
	f := fields(&zero)
	var columns []string
	for _, column := range names(f.Fixed, f.Values, f.Read) {
		if !strings.Contains(column, " ") {
			column = alias + "." + column
		}
		t.others = t.others || strings.Contains(column, "(select ")
		columns = append(columns, column)
	}
	if len(f.Fixed) > 0 {
		t.key = names(f.Fixed)[0]
	}
	t.inserted, t.update = names(f.Fixed, f.Values, f.Written), names(f.Values, f.Written)
	t.Columns, t.Set = strings.Join(columns, ", "), each(t.update, "%[1]s = @%[1]s")
	t.Select = fmt.Sprintf("select %s from %s %s ", t.Columns, name, alias)
	t.Own = t.Select + fmt.Sprintf("where %[1]s.tenant_id = @tenant and %[1]s.livemode = @live and ", alias)
	t.Stamp = fmt.Sprintf(" returning %[1]s.version, %[1]s.created_at, %[1]s.updated_at", alias)
	t.Update = t.UpdateWith(fmt.Sprintf("version = %s.version + 1, updated_at = clock_timestamp()", alias)) + t.Stamp
	return t
}

func names(lists ...F) (out []string) {
	for _, list := range lists {
		for i := 0; i < len(list); i += 2 {
			out = append(out, list[i].(string)) //nolint:forcetypeassert // fails at the start of the process
		}
	}
	return out
}

func pointers(lists ...F) (out []any) {
	for _, list := range lists {
		for i := 1; i < len(list); i += 2 {
			out = append(out, list[i])
		}
	}
	return out
}

// Scan reads the row of a statement that selects Columns.
func (t *Table[T]) Scan(row pgx.CollectableRow) (T, error) {
	s := t.rows.Get().(*scanned[T]) //nolint:forcetypeassert // see NewTable
	defer t.rows.Put(s)
	var zero T
	s.value = zero
	err := row.Scan(s.to...)
	if err == nil && s.done != nil {
		err = s.done()
	}
	if err != nil {
		return zero, fmt.Errorf("row of %s: %w", t.name, err)
	}
	return s.value, nil
}

// Args returns the columns that are written, by name.
func (t *Table[T]) Args(v T) Args {
	f := t.fields(&v)
	args := make(Args, len(t.inserted)+2)
	args.add(f.Fixed)
	args.add(f.Values)
	args.add(f.Written)
	return args
}

// One reads the row that a condition selects, or returns the table's error for a missing row.
func (t *Table[T]) One(ctx context.Context, q Q, where string, args Args) (T, error) {
	return One(ctx, q, t.Scan, t.missing, t.Own+where, args)
}

// Get reads the row with an id. lock is what follows the condition, such as "for update". If the row has columns from other tables, a
// separate statement of the same round trip locks it first: a statement that waits for a lock reads other tables as of its start.
func (t *Table[T]) Get(ctx context.Context, q Q, id any, lock string) (T, error) {
	if tx, ok := q.(Tx); ok && t.others && lock != "" {
		Queue(tx, "lock "+t.name, fmt.Sprintf(`select from %[1]s %[2]s where %[2]s.tenant_id = @tenant and %[2]s.livemode = @live and %[2]s.id = @id %[3]s`,
			t.name, t.alias, lock), Args{"id": id})
		lock = ""
	}
	return t.One(ctx, q, t.alias+".id = @id "+lock, Args{"id": id})
}

// Many reads the rows that a condition selects.
func (t *Table[T]) Many(ctx context.Context, q Q, where string, args Args) ([]T, error) {
	return Many(ctx, q, t.Scan, t.Own+where, args)
}

// Insert returns the statement that inserts a value. more are further columns with their expressions: name, expression, …
func (t *Table[T]) Insert(more ...string) string {
	columns, values := ", "+each(t.inserted, "%s"), ", "+each(t.inserted, "@%s")
	for i := 0; i < len(more); i += 2 {
		columns, values = columns+", "+more[i], values+", "+more[i+1]
	}
	return fmt.Sprintf("insert into %s as %s (tenant_id, livemode%s) values (@tenant, @live%s)", t.name, t.alias, columns, values)
}

// InsertNow is Insert with created_at and updated_at, which are the same instant. first are CTEs before the statement, without "with".
func (t *Table[T]) InsertNow(first string, more ...string) string {
	const at = "(select at from stamp)"
	if first != "" {
		first += ", "
	}
	return "with " + first + "stamp as materialized (select clock_timestamp() as at) " +
		t.Insert(append(more, "created_at", at, "updated_at", at)...)
}

// Put returns Insert followed by the clause that gives an existing row with the same key the values of the insert and the next
// version.
func (t *Table[T]) Put(more ...string) string {
	return t.Insert(more...) + t.replace() + fmt.Sprintf(", version = %s.version + 1, updated_at = clock_timestamp()", t.alias)
}

// PutNewer returns Insert followed by Newer.
func (t *Table[T]) PutNewer() string { return t.Insert() + t.Newer() }

// Newer is the clause after an insert that gives an existing row with the same key the inserted values, unless its version is at least
// as high. It is for copies of rows of another service, whose states can arrive in any order. The version is among Values.
func (t *Table[T]) Newer() string {
	return t.replace() + fmt.Sprintf(" where %[1]s.version < excluded.version", t.alias)
}

func (t *Table[T]) replace() string {
	return fmt.Sprintf(" on conflict (tenant_id, livemode, %s) do update set %s", t.key, each(t.update, "%[1]s = excluded.%[1]s"))
}

// UpdateWith returns the statement that writes Values and Written, and further assignments, of the row with the id.
func (t *Table[T]) UpdateWith(more string) string {
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf("update %[1]s %[2]s set %[3]s%[4]s where %[2]s.tenant_id = @tenant and %[2]s.livemode = @live and %[2]s.id = @id",
		t.name, t.alias, t.Set, more)
}

// Raw is the pointer for JSON that is stored as it was sent. Empty is null.
func Raw(p *json.RawMessage) *[]byte {
	if len(*p) == 0 {
		*p = nil
	}
	return (*[]byte)(p)
}

// Array is the pointer for an array that is not null. A nil list is empty.
func Array[T any](p *[]T) *[]T {
	if *p == nil {
		*p = []T{}
	}
	return p
}

// NullColumn is a column in which null stands for the zero value.
type NullColumn[T comparable] struct{ v *T }

// Null returns the column of a value whose zero is stored as null.
func Null[T comparable](v *T) *NullColumn[T] { return &NullColumn[T]{v} }

// Value implements driver.Valuer.
func (c *NullColumn[T]) Value() (driver.Value, error) {
	var zero T
	if *c.v == zero {
		return nil, nil // A nil value is null.
	}
	return driver.DefaultParameterConverter.ConvertValue(*c.v)
}

// Scan implements sql.Scanner.
func (c *NullColumn[T]) Scan(src any) error {
	var n sql.Null[T]
	err := n.Scan(src)
	*c.v = n.V
	return err
}

// JSONColumn is a json column in which null stands for a nil list or map.
type JSONColumn[T any] struct{ v *T }

// JSON returns the column of a list or a map.
func JSON[T any](v *T) *JSONColumn[T] { return &JSONColumn[T]{v} }

// Value implements driver.Valuer.
func (c *JSONColumn[T]) Value() (driver.Value, error) {
	raw, err := json.Marshal(*c.v)
	if err != nil || string(raw) == "null" {
		return nil, err
	}
	return string(raw), nil
}

// Scan implements sql.Scanner.
func (c *JSONColumn[T]) Scan(src any) error {
	var v T
	if raw, ok := src.([]byte); ok {
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
	}
	*c.v = v
	return nil
}
