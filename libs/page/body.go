package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"
)

// SortKey is the position of a row in the orders of a list.
type SortKey struct {
	ID               [16]byte
	Created, Updated time.Time
	By               time.Time // in the order that the list offers besides; zero: none
}

// MaxBytes limits the total size of a page's bodies. Only a first body that is larger can exceed it.
const MaxBytes = 2 << 20

// maxRead limits the stored bytes that are read for a page. It is larger than MaxBytes, so that the size of the bodies determines
// where the page ends.
const maxRead = 2 * MaxBytes

// Rows are the stored rows of one page, at most the request's limit. Only Read creates them.
type Rows[T any] struct {
	Items []T
	More  bool // more rows follow
}

// Read reads the rows of a list statement that ends in Where.Page. It keeps no more rows than a page can show.
func Read[T any](ctx context.Context, q pg.Q, r Request, scan pgx.RowToFunc[T], sql string, args ...any) (Rows[T], error) {
	if r.count != nil {
		return Rows[T]{}, count(ctx, q, r.count, sql, args)
	}
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return Rows[T]{}, fmt.Errorf("query: %w", err)
	}
	defer rows.Close()
	out, read := Rows[T]{}, 0
	for rows.Next() {
		if len(out.Items) == r.Limit || read > maxRead {
			out.More = true
			return out, nil
		}
		for _, value := range rows.RawValues() {
			read += len(value)
		}
		item, err := scan(rows)
		if err != nil {
			return Rows[T]{}, fmt.Errorf("read row: %w", err)
		}
		out.Items = append(out.Items, item)
	}
	if err := rows.Err(); err != nil {
		return Rows[T]{}, fmt.Errorf("read rows: %w", err)
	}
	return out, nil
}

// count stores the number of rows of the statement in n.
func count(ctx context.Context, q pg.Q, n *int, sql string, args []any) error {
	rows, err := q.Query(ctx, `select count(*)::int from (`+sql+`) x`, args...)
	if err == nil {
		*n, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	}
	if err != nil {
		return fmt.Errorf("count rows: %w", err)
	}
	return nil
}

// Body returns the response of a list: its rows in their public form, as many as MaxBytes allows and at least one.
func Body[T, V any](c *Codec, r Request, rows Rows[T], key func(T) SortKey, shape func(T) V) ([]byte, error) {
	data, more, err := Fit(rows, shape)
	if err != nil {
		return nil, err
	}
	next := ""
	if more {
		next = c.Next(r, r.position(key(rows.Items[len(data)-1])))
	}
	return httpx.ListBody(data, more, next), nil
}

// Fit renders as many rows as one page can show, and reports whether more rows follow.
func Fit[T, V any](rows Rows[T], shape func(T) V) (data []json.RawMessage, more bool, err error) {
	return FitWithin(rows, MaxBytes, shape)
}

// FitWithin is Fit for a response with another limit than a page. most must not exceed the bytes that Read keeps, 4 MiB.
func FitWithin[T, V any](rows Rows[T], most int, shape func(T) V) (data []json.RawMessage, more bool, err error) {
	size := 0
	data = make([]json.RawMessage, 0, len(rows.Items))
	for i, row := range rows.Items {
		body, err := contract.Encode(shape(row))
		if err != nil {
			return nil, false, err
		}
		if size += len(body); size > most && i > 0 {
			return data, true, nil
		}
		data = append(data, body)
	}
	return data, rows.More, nil
}

// Send responds with the result of Body.
func Send[T, V any](c *gin.Context, pages *Codec, r Request, rows Rows[T], key func(T) SortKey, shape func(T) V) error {
	body, err := Body(pages, r, rows, key, shape)
	if err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusOK, "", body)
}

func (r Request) position(p SortKey) Position {
	switch {
	case r.By != "":
		return Position{At: p.By, ID: p.ID}
	case r.Updated:
		return Position{At: p.Updated, ID: p.ID}
	default:
		return Position{At: p.Created, ID: p.ID}
	}
}

// Serve responds with the requested page of the list. It responds with the whole list as CSV if the operation supports CSV and
// the request prefers it. read reads the rows.
func Serve[T, V any](
	c *gin.Context, pages *Codec, db *pg.DB,
	read func(ctx context.Context, q pg.Q, r Request) (Rows[T], error), key func(T) SortKey, shape func(T, api.Mode) V,
) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	mode := httpx.Mode(ctx)
	show := func(v T) V { return shape(v, mode) }
	csv := httpx.PrefersCSV(c)
	if csv {
		if err := refusePaging(q); err != nil {
			return err
		}
	}
	r, err := pages.Parse(ctx, q, httpx.OperationID(c))
	if err != nil {
		return err
	}
	if csv {
		return serveCSV(c, r, func(ctx context.Context, r Request) (Rows[T], error) { return read(ctx, r.Reader(ctx, db), r) }, key, show)
	}
	rows, err := read(ctx, r.Reader(ctx, db), r)
	if err != nil {
		return err
	}
	return Send(c, pages, r, rows, key, show)
}

// Shown is a row with its public body, for lists that create the bodies of all rows together.
type Shown[V any] struct {
	Key  SortKey
	Body V
}

// Show pairs rows with their bodies. If only the first rows have bodies, the others are on the next page.
func Show[T, V any](rows Rows[T], bodies []V, key func(T) SortKey) Rows[Shown[V]] {
	shown := Rows[Shown[V]]{Items: make([]Shown[V], 0, len(bodies)), More: rows.More || len(bodies) < len(rows.Items)}
	for i, body := range bodies {
		shown.Items = append(shown.Items, Shown[V]{key(rows.Items[i]), body})
	}
	return shown
}

// ServeShown is Serve for rows whose bodies read already created.
func ServeShown[V any](c *gin.Context, pages *Codec, db *pg.DB, read func(ctx context.Context, q pg.Q, r Request) (Rows[Shown[V]], error)) error {
	return Serve(c, pages, db, read, func(s Shown[V]) SortKey { return s.Key }, func(s Shown[V], _ api.Mode) V { return s.Body })
}
