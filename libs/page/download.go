package page

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/obs"
)

const (
	downloadTimeout = 5 * time.Minute  // of a whole download
	writeChunk      = 64 << 10         // bytes of one write
	writeStallTime  = 45 * time.Second // of one write; longer than the gateway waits for its client
)

// Download responds with a body of any size, which send writes part by part. send must write at least once. The downloads of a
// tenant and of the process are limited in number and duration. Download returns an error that occurs before the first byte. After
// the first byte, an error closes the connection, so that no client mistakes a part for the whole.
func Download(c *gin.Context, contentType string, send func(ctx context.Context, w io.Writer) error) error {
	done, err := downloads.Acquire(c.Request.Context(), caller.FromContext(c.Request.Context()).Tenant)
	if err != nil {
		return err
	}
	defer done()
	d := &download{c: c, control: http.NewResponseController(c.Writer), contentType: contentType, end: time.Now().Add(downloadTimeout)}
	ctx, cancel := context.WithDeadline(c.Request.Context(), d.end)
	defer cancel()
	err = send(ctx, d)
	if err != nil && d.began {
		obs.Add(ctx, slog.String("error", "the download broke off: "+err.Error()))
		panic(http.ErrAbortHandler)
	}
	return err
}

// download is a body that is being sent to a client.
type download struct {
	c           *gin.Context
	control     *http.ResponseController
	contentType string
	end         time.Time
	began       bool
}

// Write sends a part immediately. It sends the header before the first part.
func (d *download) Write(part []byte) (int, error) {
	if !d.began {
		d.began = true
		h := d.c.Writer.Header()
		h.Set("Content-Type", d.contentType)
		h.Set("Cache-Control", "no-store")
		d.c.Status(http.StatusOK)
	}
	sent := 0
	for sent < len(part) {
		deadline := time.Now().Add(writeStallTime)
		if d.end.Before(deadline) {
			deadline = d.end
		}
		_ = d.control.SetWriteDeadline(deadline) // not every connection supports deadlines
		n, err := d.c.Writer.Write(part[sent:min(sent+writeChunk, len(part))])
		if sent += n; err != nil {
			return sent, fmt.Errorf("write: %w", err)
		}
	}
	if err := d.control.Flush(); err != nil {
		return sent, fmt.Errorf("write: %w", err)
	}
	return sent, nil
}
