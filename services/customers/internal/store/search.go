package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// What one page of a search may cost, whatever is stored: a condition with at most rareMatches rows is read as a
// whole, and the newest customers are looked at until walkLookups look-ups are made.
const (
	rareMatches = 1_000
	walkLookups = 10_000
)

// condition is what a customer must have in one of the two index tables. Each "?" is one of args.
type condition struct {
	rows string // of the index table, as from and where
	has  string // the same for one customer c: true, or null
	args []any
}

func conditions(f CustomerFilter) []condition {
	var out []condition
	for _, p := range domain.Prefixes(f.Search) {
		out = append(out, condition{
			rows: `customer_words i where i.word >= ? and i.word < ?`,
			// The customer's own words are few, those of a prefix many: || keeps the word out of the index condition.
			has:  `(select true from customer_words i where i.customer_id = c.id and i.word || '' >= ? and i.word || '' < ? limit 1)`,
			args: []any{p.From, p.Before},
		})
	}
	for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		out = append(out, condition{
			rows: `customer_metadata i where i.key = ? and i.value = ?`,
			has:  `(select true from customer_metadata i where i.key = ? and i.value = ? and i.customer_id = c.id limit 1)`,
			args: []any{key, f.Metadata[key]},
		})
	}
	return out
}

// search reads one page of the customers that fulfil all conditions. A condition that few rows fulfil is where it
// begins. If all are common, so are the matches as a rule: it looks at customers in the order of the list until the
// page is full. Where that takes too many, matches are few or far away: their ids are collected, and what that may
// cost ends with the statement time-out.
func search(ctx context.Context, q pg.Q, f CustomerFilter, r page.Request, conds []condition) (page.Rows[domain.Customer], error) {
	rare, err := rarest(ctx, q, conds)
	if err != nil {
		return page.Rows[domain.Customer]{}, err
	}
	if rare >= 0 {
		return collected(ctx, q, f, r, conds[rare:rare+1], slices.Concat(conds[:rare], conds[rare+1:]))
	}
	list, complete, err := walked(ctx, q, f, r, conds)
	if err != nil || complete {
		return list, err
	}
	return collected(ctx, q, f, r, conds, nil)
}

// rarest is the place of the condition that the fewest rows fulfil, -1 when each has more than rareMatches.
func rarest(ctx context.Context, q pg.Q, conds []condition) (int, error) {
	counts := make([]string, len(conds))
	var args []any
	for i, c := range conds {
		counts[i] = fmt.Sprintf(`(select count(*)::int from (select from %s limit %d) x)`, bind(c.rows, len(args)), rareMatches+1)
		args = append(args, c.args...)
	}
	rows, err := q.Query(ctx, `select array[`+strings.Join(counts, ", ")+`]`, args...)
	if err != nil {
		return 0, fmt.Errorf("count matches: %w", err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[[]int])
	if err != nil {
		return 0, fmt.Errorf("count matches: %w", err)
	}
	least := slices.Index(found, slices.Min(found))
	if found[least] > rareMatches {
		return -1, nil
	}
	return least, nil
}

// collected begins with the ids of those who fulfil the first conditions. They are collected as an array: whatever
// the planner believes of a parameter it has not seen, it then reads the index ranges of what was asked and the
// customers by key, never all customers of the tenant.
func collected(ctx context.Context, q pg.Q, f CustomerFilter, r page.Request, first, others []condition) (page.Rows[domain.Customer], error) {
	w := where(f)
	selects := make([]string, len(first))
	var args []any
	for i, c := range first {
		selects[i] = `select i.customer_id from ` + c.rows
		args = append(args, c.args...)
	}
	w.Add(`c.id = any(array(`+strings.Join(selects, " intersect ")+`))`, args...)
	for _, c := range others {
		w.Add(c.has, c.args...)
	}
	tail, args := w.Page(r, "c")
	return listed(ctx, q, r, `select `+customerColumns+` from customers c `+tail, args...)
}

// walked looks at the next customers in the order of the list, as many as walkLookups allows. The page is complete
// when it is full, or when there are no more customers to look at.
func walked(ctx context.Context, q pg.Q, f CustomerFilter, r page.Request, conds []condition) (list page.Rows[domain.Customer], complete bool, err error) {
	wide := r
	wide.Limit = walkLookups / len(conds)
	tail, args := where(f).Page(wide, "c")
	seen := len(args)
	has := make([]string, len(conds))
	for i, c := range conds {
		has[i] = bind(c.has, len(args))
		args = append(args, c.args...)
	}
	order := `c.created_at desc, c.id desc`
	if r.Updated {
		order = `c.updated_at, c.id`
	}
	list, err = listed(ctx, q, r, fmt.Sprintf(`select %s from (select %[1]s from customers c %s) c where %s order by %s limit %d`,
		customerColumns, tail, strings.Join(has, " and "), order, r.Limit+1), args...)
	if err != nil || list.More {
		return list, true, err
	}
	rows, err := q.Query(ctx, `select count(*)::int from (select from customers c `+tail+`) x`, args[:seen]...)
	if err != nil {
		return list, false, fmt.Errorf("count customers: %w", err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		return list, false, fmt.Errorf("count customers: %w", err)
	}
	return list, n <= wide.Limit, nil
}

// bind gives each "?" of sql its placeholder, behind those of so many arguments.
func bind(sql string, before int) string {
	for n := before + 1; strings.Contains(sql, "?"); n++ {
		sql = strings.Replace(sql, "?", fmt.Sprintf("$%d", n), 1)
	}
	return sql
}
