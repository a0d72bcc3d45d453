package page

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/obs"
)

// MaxCSVRows is the most rows of a list as CSV.
const MaxCSVRows = 100_000

const (
	// csvPage is the most rows that are read at a time. An expanded page has the size of a page of JSON, because the call
	// that expands it takes no more.
	csvPage      = 1000
	csvExpanded  = 100
	csvTimeout   = 5 * time.Minute  // of a whole download
	csvChunk     = 64 << 10         // bytes of one write
	csvStallTime = 45 * time.Second // of one write; longer than the gateway waits for its client
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

// download is one list on its way to a client as CSV.
type download struct {
	c       *gin.Context
	control *http.ResponseController
	end     time.Time
	table   *table
	began   bool
}

// serveCSV answers all rows of a list, page by page. An error before the first byte is returned. After it the connection is
// closed, so that no client takes a part of the list for the whole.
func serveCSV[T, V any](
	c *gin.Context, r Request, read func(ctx context.Context, r Request) (Rows[T], error), place func(T) Place, shape func(T) V,
) error {
	op := httpx.Operation(c)
	obs.SetRoute(c.Request.Context(), httpx.CSVRoute(op))
	done, err := downloads.acquire(caller.FromContext(c.Request.Context()).Tenant)
	if err != nil {
		return err
	}
	defer done()
	d := &download{c: c, control: http.NewResponseController(c.Writer), end: time.Now().Add(csvTimeout)}
	ctx, cancel := context.WithDeadline(c.Request.Context(), d.end)
	defer cancel()
	expand := httpx.Query(c).List("expand")
	d.table = newTable(op.CSV, expand)
	size := csvPage
	if len(expand) > 0 {
		size = csvExpanded
	}
	if err := checkCount(ctx, r, op, read); err != nil {
		return err
	}
	err = sendAll(ctx, d, r, size, read, place, shape)
	if err != nil && d.began {
		obs.Add(ctx, slog.String("error", "the download broke off: "+err.Error()))
		panic(http.ErrAbortHandler)
	}
	return err
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
	ctx context.Context, d *download, r Request, size int,
	read func(ctx context.Context, r Request) (Rows[T], error), place func(T) Place, shape func(T) V,
) error {
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
		var out []byte
		for _, body := range data {
			if out, err = d.table.appendRow(out, body); err != nil {
				return err
			}
		}
		if err := d.write(out); err != nil {
			return err
		}
		sent += len(data)
		if !more || len(data) == 0 || sent == MaxCSVRows {
			return nil
		}
		at := r.position(place(rows.Items[len(data)-1]))
		r.After = &at
	}
}

// write sends records, the header before the first ones.
func (d *download) write(records []byte) error {
	if !d.began {
		d.began = true
		h := d.c.Writer.Header()
		h.Set("Content-Type", httpx.CSVType+"; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		d.c.Status(http.StatusOK)
		records = append(d.table.appendHeader(nil), records...)
	}
	for len(records) > 0 {
		n := min(len(records), csvChunk)
		deadline := time.Now().Add(csvStallTime)
		if d.end.Before(deadline) {
			deadline = d.end
		}
		_ = d.control.SetWriteDeadline(deadline) // a connection without deadlines needs none
		if _, err := d.c.Writer.Write(records[:n]); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		records = records[n:]
	}
	if err := d.control.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
