package prove

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// Calls breaks HTTP calls between services. It stands before each of them.
type Calls struct {
	mu    sync.Mutex
	fault *CallFault
	count int // of calls that the fault concerns
}

// CallFault is what breaks: the connection of the call with this number, counted from 0, to a process.
type CallFault struct {
	To   string // name of the process; empty: any
	Call int
	Drop Drop
	// Then is called when the connection breaks, or before the call passes if Drop is Nowhere. nil: nothing.
	Then func(process string)
}

// Arm sets the fault of the next calls; nil: none. It returns how many calls the fault before concerned.
func (c *Calls) Arm(fault *CallFault) (count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	count, c.count, c.fault = c.count, 0, fault
	return count
}

// due returns the fault of a call, or nil.
func (c *Calls) due(process string) *CallFault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault == nil || c.fault.To != "" && c.fault.To != process {
		return nil
	}
	c.count++
	if c.count-1 != c.fault.Call {
		return nil
	}
	return c.fault
}

// Listen starts a proxy on a loopback port before the process at an address. It returns its address and how to stop it.
func (c *Calls) Listen(process, target string) (address string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("proxy: %w", err)
	}
	pass := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: target})
	pass.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) } // the target broke it
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := c.due(process)
		if fault != nil && fault.Drop == After {
			pass.ServeHTTP(discard{header: http.Header{}}, r)
		}
		if fault != nil && fault.Then != nil {
			fault.Then(process)
		}
		if fault != nil && fault.Drop != Nowhere {
			panic(http.ErrAbortHandler)
		}
		pass.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(l) }()
	return l.Addr().String(), func() { _ = server.Close() }, nil
}

// discard is a response that nobody receives.
type discard struct{ header http.Header }

// Header implements http.ResponseWriter.
func (d discard) Header() http.Header { return d.header }

// Write implements http.ResponseWriter.
func (d discard) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (d discard) WriteHeader(int) {}
