package page

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/obs"
)

// MaxCSVRows is the maximum number of rows of a list as CSV.
const MaxCSVRows = 100_000

// csvExpanded is the maximum number of rows of an expanded page. It equals a JSON page, because the call that expands rows accepts
// no more.
const csvExpanded = 100

var csvSlots = NewSlots()

// refusePaging rejects the parameters that select a page.
func refusePaging(q contract.Query) error {
	var fields []apperr.FieldError
	for _, name := range []string{"limit", "cursor"} {
		if q.Has(name) {
			fields = append(fields, apperr.FieldError{Field: name, Message: "Not allowed with text/csv, which returns all rows of the list."})
		}
	}
	if len(fields) > 0 {
		return apperr.Fields(fields)
	}
	return nil
}

// serveCSV responds with all rows of a list, page by page.
func serveCSV[T, V any](
	c *gin.Context, r Request, read func(ctx context.Context, r Request) (Rows[T], error), key func(T) SortKey, shape func(T) V,
) error {
	op := httpx.Operation(c)
	obs.SetRoute(c.Request.Context(), httpx.CSVRoute(op))
	expand := httpx.Query(c).List("expand")
	size := DownloadRows
	if len(expand) > 0 {
		size = csvExpanded
	}
	return Download(c, httpx.CSVType+"; charset=utf-8", func(ctx context.Context, w io.Writer) error {
		if err := checkCount(ctx, r, op, read); err != nil {
			return err
		}
		zone, err := civil.Location(cmp.Or(caller.FromContext(ctx).Timezone, "UTC"))
		if err != nil {
			return err
		}
		return sendAll(ctx, w, newTable(op.CSV, expand, zone), r, size, read, key, shape)
	})
}

// checkCount returns an error for a list with more than MaxCSVRows rows.
func checkCount[T any](ctx context.Context, r Request, op *contract.Operation, read func(ctx context.Context, r Request) (Rows[T], error)) error {
	n := 0
	r.Limit, r.count = MaxCSVRows, &n
	err := csvSlots.Take(ctx, func() (bool, error) {
		_, err := read(ctx, r)
		return false, err
	})
	if err != nil || n <= MaxCSVRows {
		return err
	}
	return apperr.Field("created_after", "More than 100,000 rows match, but text/csv returns at most 100,000. Narrow the list with: %s.",
		strings.Join(op.Filters(), ", "))
}

// sendAll reads and writes one page after the other. Each page is a separate statement.
func sendAll[T, V any](
	ctx context.Context, w io.Writer, t *table, r Request, size int,
	read func(ctx context.Context, r Request) (Rows[T], error), key func(T) SortKey, shape func(T) V,
) error {
	out := t.appendHeader(nil)
	for sent := 0; ; {
		r.Limit = min(size, MaxCSVRows-sent)
		var shown []T
		more := false
		err := csvSlots.Take(ctx, func() (bool, error) {
			rows, err := read(ctx, r)
			if err != nil {
				return false, err
			}
			var n int
			out, n, err = appendRows(out, t, rows.Items, shape)
			sent += n
			shown, more = rows.Items[:n], (n < len(rows.Items) || rows.More) && sent < MaxCSVRows
			return more, err
		})
		if err != nil {
			return err
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		if !more || len(shown) == 0 {
			return nil
		}
		out = out[:0]
		at := r.position(key(shown[len(shown)-1]))
		r.After = &at
	}
}

// appendRows appends the records of the first n items: as many as fit into a page of JSON, and at least one.
func appendRows[T, V any](out []byte, t *table, items []T, shape func(T) V) (_ []byte, n int, err error) {
	size := 0
	var body bytes.Buffer
	for _, item := range items {
		body.Reset()
		if err := contract.EncodeTo(&body, shape(item)); err != nil {
			return out, n, err
		}
		if size += body.Len(); size > MaxBytes && n > 0 {
			break
		}
		if out, err = t.appendRow(out, body.Bytes()); err != nil {
			return out, n, err
		}
		n++
	}
	return out, n, nil
}

// CSV responds with rows in the columns of the contract. next returns the next rows, and none after the last ones.
func CSV[V any](c *gin.Context, next func(ctx context.Context) ([]V, error)) error {
	op := httpx.Operation(c)
	obs.SetRoute(c.Request.Context(), httpx.CSVRoute(op))
	return Download(c, httpx.CSVType+"; charset=utf-8", func(ctx context.Context, w io.Writer) error {
		t := newTable(op.CSV, nil, time.UTC)
		out := t.appendHeader(nil)
		for {
			rows, err := next(ctx)
			if err == nil {
				out, err = appendAll(out, t, rows)
			}
			if err == nil {
				_, err = w.Write(out)
			}
			if err != nil || len(rows) == 0 {
				return err
			}
			out = out[:0]
		}
	})
}

// WriteCSV writes the names of the columns, and rows.
func WriteCSV[V any](w io.Writer, columns []contract.Column, rows []V) error {
	t := newTable(columns, nil, time.UTC)
	out, err := appendAll(t.appendHeader(nil), t, rows)
	if err == nil {
		_, err = w.Write(out)
	}
	return err
}

// appendAll appends the records of all rows.
func appendAll[V any](out []byte, t *table, rows []V) (_ []byte, err error) {
	var body bytes.Buffer
	for _, row := range rows {
		body.Reset()
		if err := contract.EncodeTo(&body, row); err != nil {
			return out, err
		}
		if out, err = t.appendRow(out, body.Bytes()); err != nil {
			return out, err
		}
	}
	return out, nil
}
