package load

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
)

// Target is the server and the requests to send to it.
type Target struct {
	Addr string             // host:port
	Nth  func(n int) []byte // the n-th request as it is sent; called from several goroutines
	// Refused is a status that is expected as well as those of success, such as 429; 0: none.
	Refused int
}

// responseTimeout ends a run if the target hangs.
const responseTimeout = 20 * time.Second

// Request returns one HTTP/1.1 request as it is sent. An empty body means no body. A body is JSON, unless a header says
// otherwise.
func Request(method, path string, headers []string, body string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\n", method, path)
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	if body != "" {
		if !strings.Contains(b.String(), "\r\nContent-Type:") {
			b.WriteString("Content-Type: application/json\r\nPrefer: handling=strict\r\n")
		}
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return []byte(b.String())
}

// Send sends the requests of a target for d.
func Send(ctx context.Context, t Target, p Pace, d time.Duration) (Sample, error) {
	open := make([]*conn, p.Conns)
	for i := range open {
		c, err := dial(ctx, &t, nil)
		if err != nil {
			return Sample{}, err
		}
		defer func() { _ = c.Close() }()
		open[i] = c
	}
	return Each(ctx, p, d, func(_ context.Context, i, n int) error { return open[i].send(n) })
}

// Once sends one request on a separate connection and returns the body of the response.
func Once(ctx context.Context, addr string, request []byte) ([]byte, error) {
	c, err := dial(ctx, &Target{Addr: addr, Nth: func(int) []byte { return request }}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	if err := c.send(0); err != nil {
		return nil, err
	}
	return append([]byte(nil), c.response.Body()...), nil
}

// Status sends one request on a separate connection and returns the status of the response; 0 without a response.
func Status(ctx context.Context, addr string, request []byte) int {
	c, err := dial(ctx, &Target{Addr: addr, Nth: func(int) []byte { return request }}, nil)
	if err != nil {
		return 0
	}
	defer func() { _ = c.Close() }()
	_ = c.send(0) // a status of failure is an error
	return c.response.StatusCode()
}

// conn is one keep-alive connection with at most one running request.
type conn struct {
	net.Conn
	in       *bufio.Reader
	response fasthttp.Response
	target   *Target
}

func dial(ctx context.Context, t *Target, from net.Addr) (*conn, error) {
	c, err := (&net.Dialer{LocalAddr: from}).DialContext(ctx, "tcp", t.Addr)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", t.Addr, err)
	}
	return &conn{Conn: c, in: bufio.NewReaderSize(c, 4<<10), target: t}, nil
}

// send sends the n-th request and reads its response to the end.
func (c *conn) send(n int) error {
	if err := c.SetDeadline(time.Now().Add(responseTimeout)); err != nil {
		return err
	}
	if _, err := c.Write(c.target.Nth(n)); err != nil {
		return fmt.Errorf("request %d: %w", n, err)
	}
	if err := c.response.Read(c.in); err != nil {
		return fmt.Errorf("response %d: %w", n, err)
	}
	if got := c.response.StatusCode(); got/100 != 2 && got != c.target.Refused {
		return fmt.Errorf("response %d: status %d: %.300s", n, got, c.response.Body())
	}
	return nil
}

const (
	idleAtOnce = 32 // requests at the same time
	// idleSources is the number of loopback addresses from which the connections come, because one address has only some
	// 28,000 ports, and recently closed connections occupy some of them.
	idleSources = 8
)

// Idle opens n keep-alive connections and sends one request on each. While they are idle, it calls measure. Then it
// sends another request on each.
func Idle(ctx context.Context, t Target, n int, measure func() error) error {
	open := make([]*conn, n)
	defer func() {
		for _, c := range open {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	each := func(do func(ctx context.Context, i int) error) error {
		all, ctx := errgroup.WithContext(ctx)
		all.SetLimit(idleAtOnce)
		for i := 0; i < n && ctx.Err() == nil; i++ {
			all.Go(func() error { return do(ctx, i) })
		}
		return all.Wait()
	}
	err := each(func(ctx context.Context, i int) (err error) {
		if open[i], err = dial(ctx, &t, &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%idleSources))}); err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		if tcp, ok := open[i].Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset leaves no closed connection behind that would occupy its port
		}
		return open[i].send(i)
	})
	if err != nil {
		return err
	}
	if err := measure(); err != nil {
		return err
	}
	return each(func(_ context.Context, i int) error { return open[i].send(i) })
}
