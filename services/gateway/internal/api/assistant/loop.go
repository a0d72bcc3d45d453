package assistant

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// loop sends requests to a handler of this process. Its responses are as large as those of the services, which the gateway limits.
type loop struct{ gateway http.Handler }

var errAborted = errors.New("the response was aborted")

// RoundTrip implements http.RoundTripper. The request comes from the address of the client whose message caused it.
func (l loop) RoundTrip(r *http.Request) (response *http.Response, err error) {
	in := r.Clone(r.Context())
	in.RequestURI, in.Host = r.URL.RequestURI(), r.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	defer func() { _ = in.Body.Close() }()
	if message, ok := r.Context().Value(requestKey{}).(*http.Request); ok {
		in.RemoteAddr = message.RemoteAddr
		in.Header["X-Forwarded-For"] = message.Header["X-Forwarded-For"]
	}
	defer func() {
		if p := recover(); p != nil { // the gateway has logged it
			response, err = nil, errAborted
		}
	}()
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	l.gateway.ServeHTTP(w, in)
	return w.response(r), nil
}

// recorder collects a response.
type recorder struct {
	header http.Header
	status int
	sent   bool
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	if !w.sent {
		w.status, w.sent = status, true
	}
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(b []byte) (int, error) {
	w.sent = true
	return w.body.Write(b)
}

func (w *recorder) response(r *http.Request) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.canonical(), Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}
}

// canonical returns the headers with the names that http.Header.Get finds. The gateway writes some as their drafts spell them.
func (w *recorder) canonical() http.Header {
	h := make(http.Header, len(w.header))
	for name, values := range w.header {
		for _, value := range values {
			h.Add(name, value)
		}
	}
	return h
}
