package api

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"holdfast.dev/libs/contract"

	"holdfast.dev/services/gateway/internal/domain"
)

const (
	maxBody = 1 << 20
	// firstRoom is the memory that a body gets before it arrives. It gets more, twice as much each time, once it has
	// filled what it has: a client that only declares a long body holds little.
	firstRoom = 16 << 10
)

// arrival reads a body as it comes. Each read has the patience, all of them together end at the end.
type arrival struct {
	body     io.Reader
	control  *http.ResponseController
	patience time.Duration
	end      time.Time // zero: there is none
}

// wait gives what is still to be read of the body its time, whether the gateway reads it or the server drops it.
func (a *arrival) wait() {
	until := time.Now().Add(a.patience)
	if !a.end.IsZero() && a.end.Before(until) {
		until = a.end
	}
	_ = a.control.SetReadDeadline(until) // what has no deadlines needs none
}

// Read implements io.Reader.
func (a *arrival) Read(b []byte) (int, error) {
	a.wait()
	return a.body.Read(b) //nolint:wrapcheck // a reader passes its error on
}

// arriving prepares for the body of r, if it has one, and gives its first bytes their time.
func (d *Door) arriving(w http.ResponseWriter, r *http.Request) *arrival {
	if r.ContentLength == 0 {
		return nil
	}
	a := &arrival{control: http.NewResponseController(w), patience: d.BodyPatience}
	if d.ReadTimeout > 0 {
		a.end = time.Now().Add(d.ReadTimeout)
	}
	a.body = http.MaxBytesReader(w, r.Body, maxBody)
	a.wait()
	return a
}

// readBody reads a body of the declared length, -1 where none was declared. take is asked for all memory that it holds.
func readBody(a *arrival, declared int64, take func(n int64) error) ([]byte, error) {
	most := int64(maxBody + 1) // one more, which the reader refuses
	if declared >= 0 {
		most = declared
	}
	room := min(most, firstRoom)
	if err := take(room); err != nil {
		return nil, err
	}
	body := make([]byte, 0, room)
	for {
		if len(body) == cap(body) {
			if int64(len(body)) == most {
				return body, nil
			}
			more := min(most, 2*int64(cap(body)))
			if err := take(more - int64(cap(body))); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, more), body...)
		}
		n, err := a.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, a.unread(err)
		}
	}
}

func (a *arrival) unread(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return domain.ErrTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return contract.ErrMalformed.Saying("The body stalled: the rest of it did not come within %s.", a.patience).With(err)
	default:
		return contract.ErrMalformed.Saying("The body could not be read to its end.").With(err)
	}
}
