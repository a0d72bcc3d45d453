package page

import (
	"context"
	"fmt"
	"strings"

	"holdfast.dev/libs/pg"
)

// Where collects conditions and their arguments for one list statement. The arguments are named, so that statements
// may be put together without counting them.
type Where struct {
	conds        []string
	args         pg.Args
	alias, order string // of the list, once it has its end
}

// Add appends a condition; each "?" in it stands for the next argument. A nil or empty value does not make a
// condition by itself: callers add only the filters that were asked.
func (w *Where) Add(cond string, args ...any) {
	w.conds = append(w.conds, bind(w.named(), cond, args))
}

// Fork returns a Where without conditions for another part of the same statement: its arguments are w's.
func (w *Where) Fork() *Where { return &Where{args: w.named()} }

func (w *Where) named() pg.Args {
	if w.args == nil {
		w.args = pg.Args{}
	}
	return w.args
}

// bind puts the values among args, each under a new name, and the names in place of the "?" of sql.
func bind(args pg.Args, sql string, values []any) string {
	for _, v := range values {
		name := fmt.Sprintf("p%d", len(args)+1)
		args[name] = v
		sql = strings.Replace(sql, "?", "@"+name, 1)
	}
	return sql
}

// Page adds the request's time filters and position to w and returns the rest of the statement, from
// "where" to "limit", with its arguments. alias is the table's alias; the table has created_at,
// updated_at (clock_timestamp() in the statement that writes it) and id. The statement goes through
// r.Reader. One row more than the limit is read, to know whether a page follows.
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
	column, compare, direction := "created_at", "<", "desc"
	if r.Updated {
		column, compare, direction = "updated_at", ">", "asc"
		w.Add(alias + ".updated_at < " + pg.Watermark)
	}
	if r.After != nil {
		w.Add(fmt.Sprintf("(%[1]s.%[2]s, %[1]s.id) %[3]s (?, ?)", alias, column, compare), r.After.At, r.After.ID)
	}
	return w.end(r, alias, fmt.Sprintf("%[1]s.%[2]s %[3]s, %[1]s.id %[3]s", alias, column, direction))
}

// PageByID is Page for a table whose created_at is the time in its id, newest first: the id alone is the order.
// Filters on created_at are the caller's.
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

// Bounded is list, a statement that ends in w's Page or PageByID, of which the server sends the rows that Read keeps and
// one more, and not all up to the limit: for rows so large that many of them would cross the network for nothing. size is
// the SQL of a row's bytes; columns are the names of those that list selects, those of its order among them.
func (w *Where) Bounded(list, columns, size string) string {
	return fmt.Sprintf(`select %[1]s from (
			select %[1]s, sum(%[2]s) over (order by %[3]s rows between unbounded preceding and 2 preceding) as bytes_before
			from (%[4]s) %[5]s) %[5]s
		where %[5]s.bytes_before is null or %[5]s.bytes_before <= %[6]d order by %[3]s`, columns, size, w.order, list, w.alias, maxRead)
}

// Reader reads from db what Where.Page needs: a list in the order of updated_at shows only what has settled.
func (r Request) Reader(ctx context.Context, db *pg.DB) pg.Q {
	if r.Updated {
		return db.ReadToWatermark(ctx)
	}
	return db.Read(ctx)
}
