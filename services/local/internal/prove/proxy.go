package prove

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// A Proxy stands between the processes of one participant and a PostgreSQL server, and passes each round trip to a function.
// PostgreSQL's protocol, version 3: https://www.postgresql.org/docs/current/protocol.html.
type Proxy struct {
	listener  net.Listener
	server    string // address of PostgreSQL
	intercept func(*Round)
	mu        sync.Mutex
	open      map[net.Conn]bool
	closed    bool
}

// A Round is a round trip: the messages from a client up to the one that ends them, and PostgreSQL's messages up to ReadyForQuery.
type Round struct {
	PID uint32 // of PostgreSQL's process
	// Within reports that it continues a transaction.
	Within bool
	// SQL is the statements that it runs, and Before those that its transaction ran before.
	SQL, Before []string
	// Gone is closed when the client sends something else or has closed the connection.
	Gone <-chan struct{}

	done  chan struct{}
	ended atomic.Bool // its transaction ended with it
	// drop closes the connection instead of sending the messages (Before), or instead of returning the response (After).
	drop Drop
	// hit is called when the connection breaks.
	hit func()
}

// Drop is where a connection breaks.
type Drop int

// The places of a break.
const (
	Nowhere Drop = iota
	Before       // PostgreSQL does not receive the messages
	After        // the client does not receive the response
)

// Listen starts a proxy on a loopback port. intercept returns when the round may go on, and may set its drop.
func Listen(server string, intercept func(*Round)) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{listener: l, server: server, intercept: intercept, open: map[net.Conn]bool{}}
	go p.accept()
	return p, nil
}

// Address is host and port of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close ends all connections.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = client.Close() }()
			server, err := net.Dial("tcp", p.server)
			if err != nil {
				return
			}
			defer func() { _ = server.Close() }()
			if p.track(client, server) {
				_ = p.serve(client, server)
			}
			p.untrack(client, server)
		}()
	}
}

func (p *Proxy) track(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.open[c] = true
	}
	return !p.closed
}

func (p *Proxy) untrack(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.open, c)
	}
}

// serve copies a connection until it ends.
func (p *Proxy) serve(client, server net.Conn) error {
	in, out := bufio.NewReaderSize(client, 64<<10), bufio.NewReaderSize(server, 64<<10)
	pid, err := start(in, out, client, server)
	if err != nil {
		return err
	}
	prepared, within, before := statements{}, false, []string(nil)
	for {
		sent, err := request(in)
		if err != nil {
			return err
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = in.Peek(1)
		}()
		r := &Round{PID: pid, Within: within, SQL: prepared.of(sent), Before: before, Gone: gone, done: make(chan struct{})}
		p.intercept(r)
		within, err = r.pass(slices.Concat(sent...), out, client, server)
		if before = nil; within {
			before = slices.Concat(r.Before, r.SQL)
		}
		close(r.done)
		if err != nil {
			return err
		}
		<-gone
	}
}

// statements is the SQL of prepared statements by their names.
type statements map[string]string

// of returns the SQL that messages run.
func (s statements) of(messages [][]byte) (all []string) {
	for _, m := range messages {
		parts := bytes.SplitN(m[5:], []byte{0}, 3)
		switch {
		case m[0] == 'P' && len(parts) == 3: // Parse: name, SQL
			s[string(parts[0])] = string(parts[1])
		case m[0] == 'B' && len(parts) == 3: // Bind: portal, name
			all = append(all, s[string(parts[1])])
		case m[0] == 'Q':
			all = append(all, string(parts[0]))
		}
	}
	return all
}

var errDropped = errors.New("dropped")

// pass sends the messages and returns the response. It reports whether a transaction continues.
func (r *Round) pass(messages []byte, out *bufio.Reader, client, server net.Conn) (within bool, err error) {
	if r.drop == Before {
		return false, r.broken()
	}
	if _, err := server.Write(messages); err != nil {
		return false, err
	}
	got, err := response(out)
	if err != nil {
		return false, err
	}
	if r.drop == After {
		return false, r.broken()
	}
	r.ended.Store(got[len(got)-1] == 'I') // ReadyForQuery: idle
	_, err = client.Write(got)
	return !r.ended.Load(), err
}

// Break breaks the connection instead of sending the messages.
func (r *Round) Break() { r.drop = Before }

func (r *Round) broken() error {
	if r.hit != nil {
		r.hit()
	}
	return errDropped
}

// start passes the messages of the start, and returns the number of PostgreSQL's process. A request to cancel has no response.
func start(in, out *bufio.Reader, client, server net.Conn) (pid uint32, err error) {
	size := make([]byte, 4)
	if _, err := io.ReadFull(in, size); err != nil {
		return 0, err
	}
	rest := make([]byte, binary.BigEndian.Uint32(size)-4)
	if _, err := io.ReadFull(in, rest); err != nil {
		return 0, err
	}
	if _, err := server.Write(append(size, rest...)); err != nil {
		return 0, err
	}
	for {
		m, err := message(out)
		if err != nil {
			return 0, err
		}
		if _, err := client.Write(m); err != nil {
			return 0, err
		}
		switch {
		case m[0] == 'K': // BackendKeyData
			pid = binary.BigEndian.Uint32(m[5:9])
		case m[0] == 'Z': // ReadyForQuery
			return pid, nil
		case m[0] == 'R' && needsResponse(binary.BigEndian.Uint32(m[5:9])):
			sent, err := message(in)
			if err != nil {
				return 0, err
			}
			if _, err := server.Write(sent); err != nil {
				return 0, err
			}
		}
	}
}

// needsResponse reports whether the client responds to a message of authentication: not 0 (ok) and 12 (the end of SASL).
func needsResponse(kind uint32) bool { return kind != 0 && kind != 12 }

// request reads messages up to Sync, Query or Terminate.
func request(in *bufio.Reader) (all [][]byte, err error) {
	for {
		m, err := message(in)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
		switch m[0] {
		case 'S', 'Q':
			return all, nil
		case 'X':
			return nil, io.EOF
		}
	}
}

// response reads messages up to ReadyForQuery.
func response(out *bufio.Reader) (all []byte, err error) {
	for {
		m, err := message(out)
		if err != nil {
			return nil, err
		}
		all = append(all, m...)
		if m[0] == 'Z' {
			return all, nil
		}
	}
}

// message reads one message: its type, its length without the type, and its body.
func message(r *bufio.Reader) ([]byte, error) {
	head := make([]byte, 5, 256)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head[1:]))
	m := append(head, make([]byte, n-4)...)
	_, err := io.ReadFull(r, m[5:])
	return m, err
}
