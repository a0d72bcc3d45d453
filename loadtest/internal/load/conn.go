package load

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// Target is the server and the requests to send to it.
type Target struct {
	Addr   string             // host:port
	Nth    func(n int) []byte // the n-th request as it is sent; called from several goroutines
	Status int                // the expected status of each response
	// Refused is another status that is expected, such as 429; 0: none.
	Refused int
}

// responseTimeout ends a run if the target hangs.
const responseTimeout = 20 * time.Second

// Request returns one HTTP/1.1 request as it is sent. An empty body means no body.
func Request(method, path string, headers []string, body string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\n", method, path)
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nPrefer: handling=strict\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return []byte(b.String())
}

// conn is one keep-alive connection with at most one running request.
type conn struct {
	net.Conn
	in       *bufio.Reader
	response fasthttp.Response
	target   *Target
}

func dial(ctx context.Context, t *Target) (*conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.Addr)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", t.Addr, err)
	}
	return &conn{Conn: c, in: bufio.NewReaderSize(c, 32<<10), target: t}, nil
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
	if got := c.response.StatusCode(); got != c.target.Status && got != c.target.Refused {
		return fmt.Errorf("response %d: status %d, want %d: %.300s", n, got, c.target.Status, c.response.Body())
	}
	return nil
}

// Once sends one request on a separate connection and returns the body of the response.
func Once(ctx context.Context, t Target) ([]byte, error) {
	c, err := dial(ctx, &t)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	if err := c.send(0); err != nil {
		return nil, err
	}
	return append([]byte(nil), c.response.Body()...), nil
}
