package assistant

import (
	"bytes"
	"mime"
	"net/http"
	"strings"
)

// accepts reports whether a client accepts JSON and event streams. A client without the header Accept accepts everything.
func accepts(h http.Header) (json, stream bool) {
	ranges := strings.Join(h.Values("Accept"), ",")
	if strings.TrimSpace(ranges) == "" {
		return true, true
	}
	for _, one := range strings.Split(ranges, ",") {
		switch media, _, _ := mime.ParseMediaType(one); media {
		case "*/*":
			return true, true
		case "application/json", "application/*":
			json = true
		case "text/event-stream", "text/*":
			stream = true
		}
	}
	return json, stream
}

// respond lets the handler respond to a message in a form that the client accepts. The handler requires that clients accept JSON and event
// streams, and always responds with JSON. A client that accepts only event streams gets the response as the only event of a stream.
func respond(h http.Handler, w http.ResponseWriter, r *http.Request) {
	json, stream := accepts(r.Header)
	if json || stream {
		r.Header = r.Header.Clone()
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	if json || !stream {
		h.ServeHTTP(w, r)
		return
	}
	b := &buffer{ResponseWriter: w, status: http.StatusOK}
	h.ServeHTTP(b, r)
	body := b.body.Bytes()
	if b.status == http.StatusOK {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Del("Content-Length")
		line := bytes.ReplaceAll(bytes.TrimSpace(body), []byte("\n"), []byte(" ")) // line breaks of JSON are white space
		body = append(append([]byte("event: message\ndata: "), line...), "\n\n"...)
	}
	w.WriteHeader(b.status)
	_, _ = w.Write(body) // the client has gone if this fails
}

// buffer holds a response, which a message's response bounds, until its form is known.
type buffer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (b *buffer) WriteHeader(status int) { b.status = status }

func (b *buffer) Write(p []byte) (int, error) { return b.body.Write(p) }
