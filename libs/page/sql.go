package page

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/libs/pg"
)

// Where collects conditions and their arguments for one list statement. The arguments are named, so that statements can
// be combined without counting them.
type Where struct {
	conds        []string
	args         pg.Args
	alias, order string // of the list, set by Page or PageByID
}

// Add appends a condition. Each "?" in it stands for the next argument. Callers add only the filters in the request: an empty value
// does not disable a condition.
func (w *Where) Add(cond string, args ...any) {
	w.conds = append(w.conds, bind(w.named(), cond, args))
}

// Fork returns a Where without conditions for another part of the same statement. It shares the arguments of w.
func (w *Where) Fork() *Where { return &Where{args: w.named()} }

func (w *Where) named() pg.Args {
	if w.args == nil {
		w.args = pg.Args{}
	}
	return w.args
}

// bind adds the values to args under new names, and replaces each "?" of sql with its name.
func bind(args pg.Args, sql string, values []any) string {
	for _, v := range values {
		name := fmt.Sprintf("p%d", len(args)+1)
		args[name] = v
		sql = strings.Replace(sql, "?", "@"+name, 1)
	}
	return sql
}

// Page adds the request's time filters and position to w and returns the rest of the statement, from "where" to "limit", with its
// arguments. alias is the table's alias. The table has created_at, updated_at (clock_timestamp() in the statement that writes it),
// id and the columns of the other orders, which are not null. Run the statement with r.Reader. It reads one row more than the limit, to determine whether another page follows.
func (w *Where) Page(r Request, alias string) (string, []any) {
	for _, f := range []struct {
		cond string
		on   bool
		at   any
	}{
		{"%s.created_at >= ?", r.CreatedAfter != nil, r.CreatedAfter},
		{"%s.created_at < ?", r.CreatedBefore != nil, r.CreatedBefore},
		{"%s.updated_at >= ?", r.UpdatedAfter != nil, r.UpdatedAfter},
		{"%s.updated_at < ?", r.UpdatedBefore != nil, r.UpdatedBefore},
	} {
		if f.on {
			w.Add(fmt.Sprintf(f.cond, alias), f.at)
		}
	}
	o := r.order()
	if r.Updated {
		w.Add(alias + ".updated_at < " + pg.Watermark)
	}
	if r.After != nil {
		w.Add(fmt.Sprintf("(%[1]s.%[2]s, %[1]s.id) %[3]s (?, ?)", alias, o.column, o.compare), r.After.At, r.After.ID)
	}
	return w.end(r, alias, o.by(alias+"."))
}

// order is the order of a list: by a column, then by id.
type order struct{ column, compare, direction string }

func (r Request) order() order {
	switch {
	case r.By != "":
		return order{"sort_" + r.By, ">", "asc"}
	case r.Updated:
		return order{"updated_at", ">", "asc"}
	default:
		return order{"created_at", "<", "desc"}
	}
}

// by returns what follows "order by". Each column has the prefix.
func (o order) by(prefix string) string {
	return fmt.Sprintf("%[1]s%[2]s %[3]s, %[1]sid %[3]s", prefix, o.column, o.direction)
}

// PageByID is Page for a table whose created_at is the time in its id: newest first, ordered by id alone. It adds no
// filters on created_at.
func (w *Where) PageByID(r Request, alias string) (string, []any) {
	if r.UpdatedAfter != nil {
		w.Add(alias+".updated_at >= ?", r.UpdatedAfter)
	}
	if r.UpdatedBefore != nil {
		w.Add(alias+".updated_at < ?", r.UpdatedBefore)
	}
	if r.After != nil {
		w.Add(alias+".id < ?", r.After.ID)
	}
	return w.end(r, alias, alias+".id desc")
}

func (w *Where) end(r Request, alias, order string) (string, []any) {
	w.alias, w.order = alias, order
	conds := ""
	if len(w.conds) > 0 {
		conds = "where " + strings.Join(w.conds, " and ")
	}
	limit := bind(w.named(), "limit ?", []any{r.Limit + 1})
	return fmt.Sprintf("%s order by %s %s", conds, order, limit), []any{w.args}
}

// Bounded wraps list, a statement that ends in w's Page or PageByID, for rows so large that sending all up to the limit would be
// expensive. The server sends only the rows that Read keeps and one more. size is the SQL expression for a row's size in bytes.
// columns are the names that list selects, including those of its order.
func (w *Where) Bounded(list, columns, size string) string {
	return fmt.Sprintf(`select %[1]s from (
			select %[1]s, sum(%[2]s) over (order by %[3]s rows between unbounded preceding and 2 preceding) as bytes_before
			from (%[4]s) %[5]s) %[5]s
		where %[5]s.bytes_before is null or %[5]s.bytes_before <= %[6]d order by %[3]s`, columns, size, w.order, list, w.alias, maxRead)
}

// Reader returns the reader for a statement of Where.Page: a list in the order of updated_at returns only rows whose writes have
// ended.
func (r Request) Reader(ctx context.Context, db *pg.DB) pg.Q {
	if r.Updated {
		return db.ReadToWatermark(ctx)
	}
	return db.Read(ctx)
}

// Alternative is one of several conditions. A row of a list meets exactly one of them.
type Alternative struct {
	cond string
	args []any
}

// When creates an alternative. Each "?" in cond stands for the next argument.
func When(cond string, args ...any) Alternative { return Alternative{cond, args} }

// OneOf returns one alternative for each distinct value, in which column has that value.
func OneOf[S ~string](column string, values []S) (list []Alternative) {
	for _, v := range slices.Compact(slices.Sorted(slices.Values(values))) {
		list = append(list, When(column+` = ?`, string(v)))
	}
	return list
}

// Both combines each alternative of the first list with each of the second. An empty list adds no condition.
func Both(first, second []Alternative) (list []Alternative) {
	if len(first) == 0 || len(second) == 0 {
		return slices.Concat(first, second)
	}
	for _, a := range first {
		for _, b := range second {
			list = append(list, When(`(`+a.cond+`) and (`+b.cond+`)`, slices.Concat(a.args, b.args)...))
		}
	}
	return list
}

// Union joins the lists of the alternatives, each with its own order and limit, so that each reads only the part of its index that
// the page needs. Without alternatives it returns the single list. list must end its statement with Page.
func Union(r Request, alternatives []Alternative, list func(w *Where) (string, []any)) (string, []any) {
	all := &Where{}
	if len(alternatives) == 0 {
		return list(all)
	}
	var selects []string
	var args []any
	for _, a := range alternatives {
		w := all.Fork()
		w.Add(a.cond, a.args...)
		var sql string
		sql, args = list(w)
		selects = append(selects, sql)
	}
	if len(selects) == 1 {
		return selects[0], args
	}
	return fmt.Sprintf(`select * from ((%s)) page order by %s limit %d`, strings.Join(selects, ") union all ("), r.order().by(""), r.Limit+1), args
}

// Equal adds a condition with one argument, unless v is nil.
func Equal[T any](w *Where, cond string, v *T) {
	if v != nil {
		w.Add(cond, *v)
	}
}
