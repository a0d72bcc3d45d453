package main

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// cable is a TCP connection to Redis that can be cut or made to hang.
type cable struct {
	addr   string
	target string
	mu     sync.Mutex
	conns  map[net.Conn]bool
	hang   bool
	cut    bool
	ln     net.Listener
}

// newCable returns a cable to the Redis of the tests, and its URL.
func newCable(t testing.TB) (*cable, string) {
	opt, err := redis.ParseURL(testRedisURL(t))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{addr: ln.Addr().String(), target: opt.Addr, conns: map[net.Conn]bool{}, ln: ln}
	go c.accept()
	t.Cleanup(func() { _ = ln.Close(); c.set(true, false) })
	return c, strings.Replace(testRedisURL(t), opt.Addr, c.addr, 1)
}

func (c *cable) accept() {
	for {
		in, err := c.ln.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", c.target)
		c.mu.Lock()
		refuse := err != nil || c.cut
		if !refuse {
			c.conns[in], c.conns[out] = true, true
		}
		c.mu.Unlock()
		if refuse {
			_ = in.Close()
			continue
		}
		go c.pump(in, out)
		go c.pump(out, in)
	}
}

func (c *cable) pump(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		for c.hanging() {
			time.Sleep(5 * time.Millisecond)
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (c *cable) hanging() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hang
}

// set cuts the cable or makes it hang. With neither, it works again.
func (c *cable) set(cut, hang bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut, c.hang = cut, hang
	if !cut {
		return
	}
	for conn := range c.conns {
		_ = conn.Close()
		delete(c.conns, conn)
	}
}
