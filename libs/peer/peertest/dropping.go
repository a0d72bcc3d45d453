// Package peertest provides addresses that behave like those of a load balancer during a disruption.
package peertest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Dropping returns the address, host:port, of several sockets. h responds on `living` of them, and one more drops each packet that
// opens a connection. The address of a deleted pod behaves like this while its node still routes to it. The kernel selects a socket
// by the client's port, so about one in living+1 connections reaches the silent one.
func Dropping(t *testing.T, living int, h http.Handler) string {
	t.Helper()
	address, listeners := DroppingListeners(t, living)
	for _, l := range listeners {
		server := httptest.NewUnstartedServer(h)
		_ = server.Listener.Close()
		server.Listener = l
		server.Start()
		t.Cleanup(server.Close)
	}
	return address
}

// DroppingListeners is Dropping for any protocol: it returns the address and the living sockets.
func DroppingListeners(t *testing.T, living int) (address string, listeners []net.Listener) {
	t.Helper()
	address = silentSocket(t).String()
	for range living {
		shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
			if failure := c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
			}); failure != nil {
				return failure
			}
			return err
		}}
		l, err := shared.Listen(context.Background(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		listeners = append(listeners, l)
	}
	return address, listeners
}

// silentSocket returns the address of a socket that listens but accepts nothing. Its queue is full, so Linux drops further packets
// that open a connection.
func silentSocket(t *testing.T) *net.TCPAddr {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	for _, err := range []error{
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1),
		unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
		unix.Listen(fd, 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	address := boundTo(t, fd)
	for range 10 { // the queue holds one or two
		conn, err := (&net.Dialer{Timeout: 100 * time.Millisecond}).Dial("tcp", address.String())
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("a socket whose queue is full still takes connections")
	return nil
}

// Refusing returns an address, host:port, that refuses connections until the test ends: its port is reserved, but nothing listens
// there.
func Refusing(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	return boundTo(t, fd).String()
}

// boundTo returns the address of a socket.
func boundTo(t *testing.T, fd int) *net.TCPAddr {
	t.Helper()
	bound, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	inet4, ok := bound.(*unix.SockaddrInet4)
	if !ok {
		t.Fatalf("bound to %T", bound)
	}
	return &net.TCPAddr{IP: net.IP(inet4.Addr[:]), Port: inet4.Port}
}
