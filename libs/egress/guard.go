// Package egress contains the guard against server-side request forgery: it determines to which addresses a service connects when a
// stranger has named the URL, such as receivers of webhooks and OAuth clients.
package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
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

// Ports are the ports of public addresses to which connections are allowed.
var Ports = []uint16{80, 443, 8080, 8443}

// refused4 and refused6 are the blocked ranges within 0.0.0.0/0 and 2000::/3. The chart's network policy has the same ranges. They
// include the link-local and unique local addresses of cloud metadata services, and Azure's public address for metadata.
var (
	refused4 = append(slices.Clone(ssrf.IPv4DeniedPrefixes), netip.MustParsePrefix("168.63.129.16/32"))
	refused6 = ssrf.IPv6DeniedPrefixes
)

// The limits of a connection and of a response's headers.
const (
	DialTimeout = 5 * time.Second
	maxHeader   = 32 << 10
)

// resolveTimeout is the time that CheckURL waits for a name to resolve.
const resolveTimeout = 2 * time.Second

// Resolver finds the addresses of a name. *net.Resolver implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Guard allows connections to public addresses on Ports, and on any port to the ranges that the platform's operator allows. It
// checks the dialed address, not only the address that a name resolved to before.
type Guard struct {
	Resolver Resolver
	allowed  []netip.Prefix
	public   *ssrf.Guardian
}

// NewGuard returns a guard that allows the given ranges, such as 127.0.0.0/8, in addition to public addresses. setting is the name of the
// setting with the ranges, for errors.
func NewGuard(setting string, allowed []string) (*Guard, error) {
	g := &Guard{Resolver: &net.Resolver{PreferGo: true}, public: ssrf.New(
		ssrf.WithPorts(Ports...), ssrf.WithDeniedV4Prefixes(refused4...), ssrf.WithDeniedV6Prefixes(refused6...))}
	for _, text := range allowed {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a range; want one such as 10.0.0.0/8", setting, text)
		}
		g.allowed = append(g.allowed, p.Masked())
	}
	return g, nil
}

// The errors of CheckURL, and ErrRefused of the dialer.
var (
	ErrForm    = errors.New("Must be an absolute URL with a host, without user, password or fragment.") //nolint:staticcheck // a sentence for the operator
	ErrScheme  = errors.New("Must be an https URL.")                                                    //nolint:staticcheck // as above
	ErrSchemes = errors.New("Must be an http or https URL.")                                            //nolint:staticcheck // as above
	ErrPrivate = errors.New("Must be at a public address, on port 80, 443, 8080 or 8443.")              //nolint:staticcheck // as above
	ErrRefused = errors.New("the address is not public, or the port is not 80, 443, 8080 or 8443")
)

// CheckURL returns nil if requests may be sent to raw, otherwise a sentence that describes what is allowed. In live mode the URL
// must be https. A name that does not resolve now is allowed, because each attempt checks the address again.
func (g *Guard) CheckURL(ctx context.Context, raw string, live bool) error {
	u, err := parse(raw)
	if err != nil {
		return err
	}
	if live && u.Scheme != "https" {
		return ErrScheme
	}
	port, err := portOf(u)
	if err != nil {
		return err
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		return g.checkAddress(addr, port)
	}
	host, err := ascii(u.Hostname())
	if err != nil || likeAddress(host) {
		return ErrForm
	}
	if len(g.allowed) == 0 && !slices.Contains(Ports, port) { // no address on this port is allowed
		return ErrPrivate
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	addrs, err := g.Resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil // The name may resolve later.
	}
	for _, addr := range addrs {
		if err := g.checkAddress(addr, port); err != nil {
			return err
		}
	}
	return nil
}

// parse parses a URL and checks its form, but not its address.
func parse(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return nil, ErrForm
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, ErrSchemes
	}
	if u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "" || strings.Contains(u.Host, "%") {
		return nil, ErrForm
	}
	return u, nil
}

// portOf returns the URL's port, or the scheme's default.
func portOf(u *url.URL) (uint16, error) {
	text := u.Port()
	if text == "" {
		if strings.HasSuffix(u.Host, ":") {
			return 0, ErrForm
		}
		return map[string]uint16{"http": 80, "https": 443}[u.Scheme], nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, ErrForm
	}
	return uint16(port), nil
}

// ascii returns a host in the form that net/http dials: letters, digits and dots of other scripts and widths become ASCII.
func ascii(host string) (string, error) {
	if !strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return host, nil
	}
	return idna.Lookup.ToASCII(host)
}

// likeAddress reports whether a resolver could interpret a host as an IPv4 address in an unusual form. By the WHATWG URL standard,
// it can if the last label is a number.
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

// checkAddress returns ErrPrivate if an address and port are not allowed.
func (g *Guard) checkAddress(addr netip.Addr, port uint16) error {
	if addr.Zone() != "" {
		return ErrPrivate
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
		return ErrPrivate
	}
	return nil
}

// Transport returns a transport that connects only where the guard allows it. It trusts the system's certificates, uses no proxy and only
// HTTP/1.1, and does not decompress. resolver finds the addresses of names.
func (g *Guard) Transport(resolver *net.Resolver) *http.Transport {
	dialer := &net.Dialer{Timeout: DialTimeout, Control: g.control, Resolver: resolver}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy: nil, DialContext: dialer.DialContext, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		TLSHandshakeTimeout: DialTimeout, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, Protocols: protocols,
	}
}

// control is the hook of net.Dialer that receives the address before it is dialed.
func (g *Guard) control(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" || g.checkAddress(at.Addr(), at.Port()) != nil {
		return ErrRefused
	}
	return nil
}
