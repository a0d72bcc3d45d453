package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/dnstest"
	"holdfast.dev/libs/egress"

	"holdfast.dev/services/webhooks/internal/domain"
)

var (
	loopback = netip.MustParseAddr("127.0.0.1")
	outside  = netip.MustParseAddr("93.184.215.14")
)

// here is a zone in which every name that ends in .test has the loopback address.
func here(name string) []netip.Addr {
	if strings.HasSuffix(name, ".test") {
		return []netip.Addr{loopback}
	}
	return nil
}

// newGuard returns a guard that allows ranges in addition to public addresses.
func newGuard(t testing.TB, allowed ...string) *egress.Guard {
	t.Helper()
	g, err := egress.NewGuard("", allowed)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// onPort listens on loopback at one of egress.Ports, so that only the address can be blocked.
func onPort(t *testing.T) net.Listener {
	t.Helper()
	var failed error
	for _, port := range []uint16{8443, 8080, 443, 80} {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return l
		}
		failed = errors.Join(failed, err)
	}
	t.Skip("none of the ports is free on loopback:", failed)
	return nil
}

// A name resolves to a public address when the endpoint is created and to loopback when it is dialed. Each attempt is blocked
// before the connection is made.
func TestRebindingIsRefusedAtConnect(t *testing.T) {
	t.Parallel()
	var private atomic.Bool
	z := dnstest.Zone(func(name string) []netip.Addr {
		switch {
		case name != "rebind.test":
			return nil
		case private.Load():
			return []netip.Addr{loopback}
		default:
			return []netip.Addr{outside}
		}
	})
	l := onPort(t)
	var reached atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = c.Close()
		}
	}()
	guard, err := egress.NewGuard("", nil)
	if err != nil {
		t.Fatal(err)
	}
	guard.Resolver = z.Resolver()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	url := "https://rebind.test:" + port + "/hook"
	if err := guard.CheckURL(t.Context(), url, true); err != nil {
		t.Fatalf("while it is public: %v", err)
	}
	private.Store(true)
	if err := guard.CheckURL(t.Context(), url, true); !errors.Is(err, egress.ErrPrivate) {
		t.Errorf("when it is loopback: %v", err)
	}
	s := newSender(guard, z.Resolver())
	for range 3 {
		if a := send(t, s, domain.Outgoing{URL: url, Live: true, Body: []byte("{}")}); a.Status != 0 || a.Err != egress.ErrRefused.Error() {
			t.Errorf("%d %q", a.Status, a.Err)
		}
	}
	s.Close()
	_ = l.Close()
	<-done
	if n := reached.Load(); n != 0 {
		t.Errorf("%d connections reached loopback", n)
	}
}

// The sender's errors about names do not contain the addresses.
func TestNamesThatCannotBeReached(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(closed.Addr().String())
	_ = closed.Close()
	hang := make(chan struct{})
	z := dnstest.Zone(func(name string) []netip.Addr {
		switch name {
		case "gone.test":
			return []netip.Addr{loopback}
		case "cluster.test":
			return []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00::1")}
		case "slow.test":
			<-hang
		}
		return nil
	})
	s := newSender(newGuard(t, "127.0.0.0/8"), z.Resolver())
	for url, want := range map[string]string{
		"http://gone.test:" + port:      "connection refused",
		"http://127.0.0.1:" + port:      "connection refused",
		"http://cluster.test/":          egress.ErrRefused.Error(),
		"http://10.96.0.1/":             egress.ErrRefused.Error(),
		"http://nowhere.test/":          "the host's name does not resolve",
		"http://slow.test/":             "no response in time",
		"http://１２７.０.０.１:" + port:      "connection refused",
		"http://[::ffff:10.0.0.1]:8080": egress.ErrRefused.Error(),
	} {
		limit := time.Minute
		if want == "no response in time" {
			limit = time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		a := s.Send(ctx, domain.Outgoing{URL: url})
		cancel()
		if a.Status != 0 || a.Err != want {
			t.Errorf("%s: %d %q, want %q", url, a.Status, a.Err, want)
		}
	}
	s.Close()
	close(hang)
}
