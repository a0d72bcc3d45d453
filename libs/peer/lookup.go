package peer

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	// lookupLimit is how long one lookup of a name may take.
	lookupLimit = 2 * time.Second
	// lookupWait is how long an attempt to connect waits for a lookup if an earlier one succeeded.
	lookupWait = 50 * time.Millisecond
)

// names looks up host names. It stores the last addresses of each name, so that a slow or unavailable name server stops no call to a
// known service. The names are those of the configuration, so their number is bounded.
type names struct {
	lookup func(ctx context.Context, host string) ([]string, error)

	mu    sync.Mutex
	hosts map[string]*host
}

// host is one name. A field is valid while mu of names is held.
type host struct {
	addresses []string      // of the last lookup that succeeded
	running   chan struct{} // closed when the running lookup ends; nil: none runs
	err       error         // of the last lookup
}

var resolver = &names{lookup: net.DefaultResolver.LookupHost, hosts: map[string]*host{}}

// addresses returns the addresses of a name: those of a lookup that succeeds now, or the last known ones if it takes longer. Without
// known addresses, it waits until ctx ends.
func (n *names) addresses(ctx context.Context, name string) ([]string, error) {
	n.mu.Lock()
	h := n.hosts[name]
	if h == nil {
		h = &host{}
		n.hosts[name] = h
	}
	if h.running == nil {
		h.running = make(chan struct{})
		go n.run(name, h) //nolint:gosec,contextcheck // a lookup serves all calls that wait for it
	}
	ended, known := h.running, h.addresses
	n.mu.Unlock()
	var enough <-chan time.Time
	if known != nil {
		timer := time.NewTimer(lookupWait)
		defer timer.Stop()
		enough = timer.C
	}
	select {
	case <-ended:
	case <-enough:
		return known, nil
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: context.Cause(ctx)}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.addresses == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: h.err}
	}
	return h.addresses, nil
}

// run looks up a name once for all that wait for it.
func (n *names) run(name string, h *host) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupLimit)
	defer cancel()
	found, err := n.lookup(ctx, name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && len(found) == 0 {
		err = &net.DNSError{Err: "no address", Name: name, IsNotFound: true}
	}
	if err == nil {
		h.addresses = found
	}
	h.err = err
	close(h.running)
	h.running = nil
}
