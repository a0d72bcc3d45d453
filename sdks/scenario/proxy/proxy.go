// Package proxy forwards requests to a platform, and delays, loses or cuts the responses in a given order.
package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What can happen to a request.
const (
	Pass      = "pass"       // it is forwarded
	TooMany   = "429"        // it is refused with Retry-After: 1
	Down      = "503"        // it is refused
	CutBefore = "cut-before" // the connection ends before it is forwarded
	CutAfter  = "cut-after"  // the connection ends after the platform has responded
	Half      = "half"       // the connection ends within the body of the response
	Slow      = "slow"       // the platform has responded, but the response is held back until the client gives up
	DownAfter = "503-after"  // the platform has responded, but the client gets 503
	CutStream = "cut-stream" // the connection ends after two events of the stream
)

// slowest is the longest time for which a response is held back.
const slowest = 30 * time.Second

// eventsBeforeCut is the number of events after which CutStream ends the connection.
const eventsBeforeCut = 2

// Request is a request that the proxy received.
type Request struct {
	Method, Path string
	Key          string // its Idempotency-Key
	LastEventID  string
	Fault        string // what happened to it
}

// Proxy is a server in front of a platform.
type Proxy struct {
	URL string // of the API: the address of the proxy with the path of the platform's base URL

	platform *url.URL
	server   *httptest.Server
	client   *http.Client

	mu       sync.Mutex
	faults   []string
	requests []Request
}

// Start starts a proxy. Its requests get the faults in their order. Further requests are refused with 418, which no client repeats.
func Start(baseURL string, faults []string) (*Proxy, error) {
	platform, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{platform: platform, faults: faults, client: &http.Client{Timeout: time.Minute}}
	p.server = httptest.NewServer(p)
	p.URL = p.server.URL + platform.Path
	return p, nil
}

// Close stops the proxy.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// Requests returns the requests so far.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Request(nil), p.requests...)
}

// next returns the fault of a request, and stores the request.
func (p *Proxy) next(r *http.Request) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	fault := "418"
	if len(p.faults) > 0 {
		fault, p.faults = p.faults[0], p.faults[1:]
	}
	p.requests = append(p.requests, Request{r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Get("Last-Event-ID"), fault})
	return fault
}

// ServeHTTP lets the next fault happen to a request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := p.next(r)
	if status, err := strconv.Atoi(fault); err == nil {
		refuse(w, status)
		return
	}
	if fault == CutBefore {
		cut(w)
		return
	}
	response, err := p.forward(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotImplemented) // no client repeats it
		return
	}
	defer func() { _ = response.Body.Close() }()
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		stream(w, r, response, fault)
		return
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotImplemented)
		return
	}
	respond(w, r, response, body, fault)
}

// respond sends a response, or what the fault leaves of it.
func respond(w http.ResponseWriter, r *http.Request, response *http.Response, body []byte, fault string) {
	switch fault {
	case CutAfter:
		cut(w)
	case DownAfter:
		refuse(w, http.StatusServiceUnavailable)
	case Slow:
		timer := time.NewTimer(slowest)
		defer timer.Stop()
		select {
		case <-r.Context().Done():
		case <-timer.C:
		}
		cut(w)
	case Half:
		copyHeader(w, response)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(response.StatusCode)
		_, _ = w.Write(body[:len(body)/2])
		cutWithin(w)
	default:
		copyHeader(w, response)
		w.WriteHeader(response.StatusCode)
		_, _ = w.Write(body)
	}
}

// forward sends a request to the platform. It continues when the client has left, as the platform does.
func (p *Proxy) forward(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	target := *r.URL
	target.Scheme, target.Host = p.platform.Scheme, p.platform.Host
	request, err := http.NewRequest(r.Method, target.String(), bytes.NewReader(body)) //nolint:gosec,noctx // see above; the platform is that of the test
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	request.Header = r.Header.Clone()
	return p.client.Do(request) //nolint:gosec // as above
}

// stream copies events as they arrive, until the stream or the client ends, or the fault cuts it.
func stream(w http.ResponseWriter, r *http.Request, response *http.Response, fault string) {
	copyHeader(w, response)
	w.WriteHeader(response.StatusCode)
	stop := context.AfterFunc(r.Context(), func() { _ = response.Body.Close() })
	defer stop()
	control := http.NewResponseController(w)
	events, lines := 0, bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if _, writeErr := w.Write(line); err != nil || writeErr != nil || control.Flush() != nil {
			return
		}
		if bytes.HasPrefix(line, []byte("data:")) {
			events++
		}
		if len(line) == 1 && events == eventsBeforeCut && fault == CutStream { // an empty line ends an event
			cutWithin(w)
			return
		}
	}
}

// refuse responds as the platform does when it cannot handle a request.
func refuse(w http.ResponseWriter, status int) {
	code := map[int]string{http.StatusTooManyRequests: "rate_limited", http.StatusServiceUnavailable: "unavailable"}[status]
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"type":"api_error","code":%q,"message":"Refused by the proxy of the scenario.","request_id":"req_proxy"}}`, code)
}

// copyHeader copies the header of a response.
func copyHeader(w http.ResponseWriter, response *http.Response) {
	for name, values := range response.Header {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
}

// cutWithin ends the connection within a response, after the client has received the beginning.
func cutWithin(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	end(w, false)
}

// cut ends the connection without a response.
func cut(w http.ResponseWriter) { end(w, true) }

// end closes the connection. With reset, it does so like a process that was killed.
func end(w http.ResponseWriter, reset bool) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := connection.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}
