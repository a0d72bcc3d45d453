package parts

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"sync"
)

// The range of ports: below the range of the kernel's outgoing connections, so that no client uses a selected port.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// Ports selects free loopback ports, each only once. A port is reserved for every checkout on the machine as soon as it is
// selected, before its server listens. The zero value is ready for use.
type Ports struct {
	mu     sync.Mutex
	given  map[int]bool
	claims []io.Closer
}

// Free returns preferred if it is free, otherwise any free loopback port.
func (p *Ports) Free(preferred int) (int, error) {
	if preferred != 0 && p.Take(preferred) {
		return preferred, nil
	}
	for range 200 {
		port := lowestPort + rand.IntN(highestPort-lowestPort) //nolint:gosec // no secret
		if p.Take(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", lowestPort, highestPort)
}

// Take reserves the port if it is free, and reports whether it was free.
func (p *Ports) Take(port int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given[port] {
		return false
	}
	claim, ok := claimed(port)
	if !ok {
		return false
	}
	if !listenable(port) {
		_ = claim.Close()
		return false
	}
	if p.given == nil {
		p.given = map[int]bool{}
	}
	p.given[port] = true
	p.claims = append(p.claims, claim)
	return true
}

// claimed reserves the port against other checkouts with a name in Linux's abstract socket namespace, which disappears with this
// process. Call it before listenable, which uses the port for a moment. On other systems, two starts in the same second can select
// the same port.
func claimed(port int) (claim io.Closer, ok bool) {
	if runtime.GOOS != "linux" {
		return io.NopCloser(nil), true
	}
	l, err := net.Listen("unix", "@holdfast-port-"+strconv.Itoa(port))
	return l, err == nil
}

// listenable reports whether the port is free.
func listenable(port int) bool {
	l, err := net.Listen("tcp", Loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// Loopback returns the loopback address of a port.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
