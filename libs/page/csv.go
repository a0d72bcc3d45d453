package page

import (
	"context"
	"io"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/obs"
)

// MaxCSVRows is the most rows of a list as CSV.
const MaxCSVRows = 100_000

const (
	// csvPage is the most rows that are read at a time. An expanded page has the size of a page of JSON, because the call
	// that expands it takes no more.
	csvPage     = 1000
	csvExpanded = 100
)

// refusePaging refuses the parameters that choose a page.
func refusePaging(q contract.Query) error {
	var fields []apperr.FieldError
	for _, name := range []string{"limit", "cursor"} {
		if q.Has(name) {
			fields = append(fields, apperr.FieldError{Field: name, Message: "Not taken with text/csv: it has all rows of the list."})
		}
	}
	if len(fields) > 0 {
		return apperr.Fields(fields)
	}
	return nil
}

// serveCSV answers all rows of a list, page by page.
func serveCSV[T, V any](
	c *gin.Context, r Request, read func(ctx context.Context, r Request) (Rows[T], error), place func(T) Place, shape func(T) V,
) error {
	op := httpx.Operation(c)
	obs.SetRoute(c.Request.Context(), httpx.CSVRoute(op))
	expand := httpx.Query(c).List("expand")
	size := csvPage
	if len(expand) > 0 {
		size = csvExpanded
	}
	return Download(c, httpx.CSVType+"; charset=utf-8", func(ctx context.Context, w io.Writer) error {
		if err := checkCount(ctx, r, op, read); err != nil {
			return err
		}
		return sendAll(ctx, w, newTable(op.CSV, expand), r, size, read, place, shape)
	})
}

// checkCount refuses a list with more than MaxCSVRows rows.
func checkCount[T any](ctx context.Context, r Request, op *contract.Operation, read func(ctx context.Context, r Request) (Rows[T], error)) error {
	n := 0
	r.Limit, r.count = MaxCSVRows, &n
	if _, err := read(ctx, r); err != nil {
		return err
	}
	if n <= MaxCSVRows {
		return nil
	}
	return apperr.Field("created_after", "More than 100,000 rows match, and text/csv has at most 100,000. Narrow the list with: %s.",
		strings.Join(op.Filters(), ", "))
}

// sendAll reads and writes one page after the other. Each page is a statement of its own.
func sendAll[T, V any](
	ctx context.Context, w io.Writer, t *table, r Request, size int,
	read func(ctx context.Context, r Request) (Rows[T], error), place func(T) Place, shape func(T) V,
) error {
	out := t.appendHeader(nil)
	for sent := 0; ; {
		r.Limit = min(size, MaxCSVRows-sent)
		rows, err := read(ctx, r)
		if err != nil {
			return err
		}
		data, more, err := Fit(rows, shape)
		if err != nil {
			return err
		}
		for _, body := range data {
			if out, err = t.appendRow(out, body); err != nil {
				return err
			}
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		out = nil
		sent += len(data)
		if !more || len(data) == 0 || sent == MaxCSVRows {
			return nil
		}
		at := r.position(place(rows.Items[len(data)-1]))
		r.After = &at
	}
}
