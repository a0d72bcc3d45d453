package api

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/contract"
)

// timedBody is a request body that sets a deadline for each read. No deadline is later than end.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	stall   time.Duration
	end     time.Time // zero: no limit
}

// limitBodyTime limits the time in which a body must arrive. It is the first step, because the server reads a body to its end even
// if the gateway does not.
func (s *Server) limitBodyTime(c *gin.Context) error {
	if c.Request.ContentLength == 0 {
		return nil
	}
	b := &timedBody{ReadCloser: c.Request.Body, control: http.NewResponseController(c.Writer), stall: s.BodyStallTimeout}
	if s.ReadTimeout > 0 {
		b.end = time.Now().Add(s.ReadTimeout)
	}
	b.extend()
	c.Request.Body = b
	return nil
}

// extend sets the deadline for the next bytes.
func (b *timedBody) extend() {
	until := time.Now().Add(b.stall)
	if !b.end.IsZero() && b.end.Before(until) {
		until = b.end
	}
	_ = b.control.SetReadDeadline(until) // not every body supports deadlines
}

// Read implements io.Reader. If the body stalls, the error is the response to the request.
func (b *timedBody) Read(p []byte) (int, error) {
	b.extend()
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = contract.ErrMalformed.WithMessage("The body stalled: the rest did not arrive within %s.", b.stall).WithCause(err)
	}
	return n, err
}
