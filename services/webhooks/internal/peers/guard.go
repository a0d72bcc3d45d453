// Package peers is the door out to receivers of webhooks, who may be anybody: it decides where the platform
// connects to, and bounds what a receiver can do to it.
package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"code.dny.dev/ssrf"
	"golang.org/x/net/idna"
)

// Ports are those of public addresses that receivers may listen on.
var Ports = []uint16{80, 443, 8080, 8443}

// refused4 and refused6 are the ranges within 0.0.0.0/0 and 2000::/3 that no receiver is in. The chart's policy names
// the same. Clouds answer their machines' metadata at link-local and unique local addresses, which are among them, and
// Azure also at one that is public.
var (
	refused4 = append(slices.Clone(ssrf.IPv4DeniedPrefixes), netip.MustParsePrefix("168.63.129.16/32"))
	refused6 = ssrf.IPv6DeniedPrefixes
)

const resolveTimeout = 2 * time.Second

// Resolver finds the addresses of a name. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Guard lets connections through to public addresses only, on Ports, and to the ranges that the platform's
// operator allows, on any port. What counts is the address that is dialled, whatever a name resolved to before.
type Guard struct {
	Resolver Resolver
	allowed  []netip.Prefix
	public   *ssrf.Guardian
}

// NewGuard allows ranges such as 127.0.0.0/8 beside public addresses.
func NewGuard(allowed []string) (*Guard, error) {
	g := &Guard{Resolver: &net.Resolver{PreferGo: true}, public: ssrf.New(
		ssrf.WithPorts(Ports...), ssrf.WithDeniedV4Prefixes(refused4...), ssrf.WithDeniedV6Prefixes(refused6...))}
	for _, text := range allowed {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("WEBHOOK_ALLOWED_CIDRS: %q is no range such as 10.0.0.0/8", text)
		}
		g.allowed = append(g.allowed, p.Masked())
	}
	return g, nil
}

// What CheckURL and the dialler say.
var (
	errForm    = errors.New("Must be an absolute URL with a host, without user, password or fragment.") //nolint:staticcheck,revive // a sentence for people
	errScheme  = errors.New("Must be an https URL.")                                                    //nolint:staticcheck,revive // as above
	errSchemes = errors.New("Must be an http or https URL.")                                            //nolint:staticcheck,revive // as above
	errPrivate = errors.New("Must be at a public address, on port 80, 443, 8080 or 8443.")              //nolint:staticcheck,revive // as above
	errRefused = errors.New("the address is not public, or the port is none of 80, 443, 8080 and 8443")
)

// CheckURL returns nil when deliveries may go to raw, else a sentence that says what is allowed. In live mode it
// must be https. A name that does not resolve now is accepted: each attempt checks again.
func (g *Guard) CheckURL(ctx context.Context, raw string, live bool) error {
	u, err := parse(raw)
	if err != nil {
		return err
	}
	if live && u.Scheme != "https" {
		return errScheme
	}
	port, err := portOf(u)
	if err != nil {
		return err
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		return g.verdict(addr, port)
	}
	host, err := ascii(u.Hostname())
	if err != nil || likeAddress(host) {
		return errForm
	}
	if len(g.allowed) == 0 && !slices.Contains(Ports, port) { // whatever the name resolves to later
		return errPrivate
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	addrs, err := g.Resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil //nolint:nilerr // it may resolve later
	}
	for _, addr := range addrs {
		if err := g.verdict(addr, port); err != nil {
			return err
		}
	}
	return nil
}

func parse(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return nil, errForm
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, errSchemes
	}
	if u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "" || strings.Contains(u.Host, "%") {
		return nil, errForm
	}
	return u, nil
}

func portOf(u *url.URL) (uint16, error) {
	text := u.Port()
	if text == "" {
		if strings.HasSuffix(u.Host, ":") {
			return 0, errForm
		}
		return map[string]uint16{"http": 80, "https": 443}[u.Scheme], nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, errForm
	}
	return uint16(port), nil
}

// ascii is a host as net/http dials it: letters, digits and dots of other scripts and widths become ASCII.
func ascii(host string) (string, error) {
	if !strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return host, nil
	}
	return idna.Lookup.ToASCII(host)
}

// likeAddress reports whether some resolver may read a host as an IPv4 address in one of its other forms: its last
// label is a number, as the URL standard of WHATWG has it.
func likeAddress(host string) bool {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	last := strings.ToLower(labels[len(labels)-1])
	if last == "" {
		return true
	}
	if rest, hex := strings.CutPrefix(last, "0x"); hex {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// verdict judges one address and port.
func (g *Guard) verdict(addr netip.Addr, port uint16) error {
	if addr.Zone() != "" {
		return errPrivate
	}
	plain := addr.Unmap()
	if slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.Contains(plain) }) {
		return nil
	}
	network := "tcp4"
	if plain.Is6() {
		network = "tcp6"
	}
	if err := g.public.Safe(network, netip.AddrPortFrom(plain, port).String(), nil); err != nil {
		return errPrivate
	}
	return nil
}

// control is for net.Dialer: it sees the address that is about to be dialled.
func (g *Guard) control(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" || g.verdict(at.Addr(), at.Port()) != nil {
		return errRefused
	}
	return nil
}
