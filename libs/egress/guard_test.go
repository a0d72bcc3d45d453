package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/proto"
)

// names is a Resolver of a fixed list; other names do not resolve.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	found := n[strings.TrimSuffix(strings.ToLower(host), ".")]
	if found == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var out []netip.Addr
	for _, a := range found {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, nil
}

// testNames are the names that resolve in tests.
var testNames = names{
	"public.test": {"93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"}, "xn--bcher-kva.test": {"93.184.215.14"}, "my_host.test": {"93.184.215.14"},
	"private.test": {"10.0.0.7"}, "localhost": {"127.0.0.1", "::1"}, "mixed.test": {"93.184.215.14", "192.168.1.1"}, "mixed6.test": {"93.184.215.14", "fd00::1"},
	"metadata.test": {"169.254.169.254"}, "mapped.test": {"::ffff:127.0.0.1"}, "nat64.test": {"64:ff9b::7f00:1"}, "xn--mnchen-3ya.test": {"127.0.0.1"}, "empty.test": {},
}

func newGuard(t testing.TB, allowed ...string) *Guard {
	g, err := NewGuard("ALLOWED_CIDRS", allowed)
	if err != nil {
		t.Fatal(err)
	}
	g.Resolver = testNames
	return g
}

// urls contains URLs by the result of CheckURL in test mode.
var urls = map[error][]string{
	nil: {
		"http://93.184.215.14", "https://93.184.215.14/hook", "http://93.184.215.14:80/", "http://93.184.215.14:443/", "http://93.184.215.14:8080/", "https://93.184.215.14:8443/",
		"https://93.184.215.14:00443/", "https://[2606:4700:4700::1111]/", "https://[2606:4700:4700::1111]:8443/", "https://[::ffff:8.8.8.8]/", "https://[::ffff:808:808]/",
		"https://public.test/a/b?c=d&e=%20#", "HTTPS://PUBLIC.TEST/", "https://public.test./", "https://my_host.test/", "https://public.test:8443", "http://public.test?q",
		"https://bücher.test/", "https://BÜCHER.test/", "https://b%C3%BCcher.test/", "https://xn--bcher-kva.test/", "https://public。test/", "https://ｐｕｂｌｉｃ.test/",
		"https://nowhere.test/", "http://nowhere.test:8080/", "https://no-name/", "https://empty.test/", "https://0x7f.example/", "https://127.0.0.1.nip.test/", "https://1e100.test/",
		// next to the ranges below
		"http://9.255.255.255/", "http://11.0.0.0/", "http://100.63.255.255/", "http://100.128.0.0/", "http://126.255.255.255/", "http://128.0.0.1/", "http://169.253.255.255/",
		"http://169.255.0.0/", "http://172.15.255.255/", "http://172.32.0.0/", "http://192.0.1.0/", "http://192.167.255.255/", "http://192.169.0.0/", "http://198.17.255.255/", "http://168.63.129.15/", "http://168.63.129.17/",
		"http://198.20.0.0/", "http://223.255.255.255/", "http://1.0.0.0/", "http://[2001:200::1]/", "http://[2003::1]/", "http://[2000::1]/", "http://[3ffe:ffff::1]/",
	},
	ErrPrivate: {
		"http://127.0.0.1/", "http://127.0.0.1:8080/", "http://127.1.2.3/", "http://127.255.255.255/", "http://0.0.0.0/", "http://0.1.2.3/",
		"http://10.0.0.1/", "http://10.255.255.255/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.0.1/", "http://192.168.255.255/",
		"http://100.64.0.1/", "http://100.100.100.200/", "http://100.127.255.255/", // shared; one provider's metadata
		"http://169.254.169.254/latest/meta-data/", "http://169.254.170.2/", "http://192.0.0.1/", "http://192.0.0.192/", "http://192.0.2.1/", "http://192.88.99.1/", "http://168.63.129.16:32526/",
		"http://198.18.0.1/", "http://198.19.255.255/", "http://198.51.100.7/", "http://203.0.113.9/", "http://224.0.0.1/", "http://239.255.255.255/", "http://240.0.0.1/", "http://255.255.255.255/",
		"http://[::]/", "http://[::1]/", "http://[::1]:8080/", "http://[0:0:0:0:0:0:0:1]/", "http://[0000:0000:0000:0000:0000:0000:0000:0001]/",
		"http://[::127.0.0.1]/", "http://[::7f00:1]/", "http://[::8.8.8.8]/", // IPv4-compatible
		"http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::FFFF:10.0.0.1]/", "http://[::ffff:169.254.169.254]/", "http://[0:0:0:0:0:ffff:c0a8:1]/", "http://[::ffff:0.0.0.0]/",
		"http://[::ffff:0:127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[64:ff9b::10.0.0.1]/", "http://[64:ff9b::8.8.8.8]/", "http://[64:ff9b:1::a00:1]/",
		"http://[2002:7f00:1::]/", "http://[2002:c0a8:101::1]/", "http://[2001::1]/", "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", "http://[2001:10::1]/", "http://[2001:20::1]/",
		"http://[2001:db8::1]/", "http://[3fff::1]/", "http://[100::1]/", "http://[5f00::1]/", "http://[4000::1]/", "http://[fc00::1]/", "http://[fd00:ec2::254]/", "http://[fe80::1]/",
		// addresses of cloud services for their own machines: metadata, credentials, names, time
		"http://168.63.129.16/", "http://168.63.129.16:8080/", "http://[::ffff:168.63.129.16]/", "http://169.254.169.254:8080/", "http://169.254.169.253/", "http://169.254.169.123/",
		"http://169.254.170.23/", "http://[fd00:ec2::23]/", "http://[fd00:ec2::253]/", "http://[fd20:ce::254]/", "http://[fe80::1234:5678:9abc]/", "http://[fd00:c1::a9fe:a9fe]/",
		"http://[fec0::1]/", "http://[ff02::1]/", "http://[ff0e::1]/", "http://[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]/",
		"https://localhost/", "https://LOCALHOST./", "https://private.test/", "https://mixed.test/", "https://mixed6.test/", "https://metadata.test/", "https://mapped.test/", "https://nat64.test/",
		"https://münchen.test/", "https://ｌｏｃａｌｈｏｓｔ/", "https://localho%C5%BFt/", // an ſ
		"http://93.184.215.14:1/", "http://93.184.215.14:22/", "http://93.184.215.14:25/", "http://93.184.215.14:6379/", "http://93.184.215.14:65535/", "http://public.test:3000/",
		"http://nowhere.test:22/", "https://nowhere.test:8444/",
	},
	ErrForm: {
		"http://2130706433/", "http://0x7f000001/", "http://0X7F000001/", "http://017700000001/", "http://0/", "http://127.1/", "http://127.0.1/", "http://10.1/", "http://0x7f.1/", "http://0x7f.0.0.0x1/",
		"http://0177.0.0.1/", "http://127.0.0.01/", "http://0x/", "http://127.0.0.1./", "http://127.0.0.1../", "http://localhost../", "http://256.256.256.256/", "http://1.2.3.4.5/", "http://a.1/", "http://a.0x7f/",
		"http://１２７.０.０.１/", "http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/", "http://127．0．0．1/", "http://127｡0｡0｡1/", "http://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/", "http://２１３０７０６４３３/",
		"http://[127.0.0.1]/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::1%25lo]/", "http://[::1/", "http://::1/", "http://[::1]a/", "http://[v1.a]/", "http://[]/",
		"http://127.0.0.1%2f@public.test/", "http://%31%32%37.0.0.1/", "http://public.test%00/", "http://public%2etest/", "http://a%E3%80%80b.test/",
		"http://user@public.test/", "http://user:secret@public.test/", "http://@public.test/", "http://public.test@127.0.0.1/", "http://public.test:80@127.0.0.1:80/", "http://127.0.0.1#@public.test/",
		"http://public.test\\@127.0.0.1/", "http://127.0.0.1\\.public.test/", "http:\\\\public.test/", "http://public.test/\\", "http://public.test/a b", "http://public.test/\t", "http://public.test\n/",
		"ht\ttp://public.test/", " http://public.test/", "http://public.test/\x7f", "http://pub lic.test/", "http://public.test/#part", "http:public.test", "http:/public.test", "http:///public.test", "http://", "https://:443/",
		"http://public.test:/", "http://public.test:0/", "http://public.test:65536/", "http://public.test:-80/", "http://public.test:+80/", "http://public.test:8o/", "http://public.test:80:80/", "http://public.test:0x50/", "http://public.test:４４３/",
		"http://xn--\u00fc.test/", "%", "http://%zz/",
	},
	ErrSchemes: {
		"", "public.test", "//public.test/", "/etc/passwd", "public.test/hook", "file:///etc/passwd", "gopher://127.0.0.1:6379/_INFO", "ftp://public.test/", "unix:///var/run/docker.sock", "ws://public.test/",
		"data:text/plain,a", "javascript:alert(1)", "httpx://public.test/", "mailto:a@public.test", "dict://127.0.0.1:11211/", "ldap://public.test", "http+unix://var/run/",
	},
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	g := newGuard(t)
	for want, list := range urls {
		for _, raw := range list {
			if err := g.CheckURL(t.Context(), raw, false); !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", raw, err, want)
			}
			live := g.CheckURL(t.Context(), raw, true)
			if strings.HasPrefix(strings.ToLower(raw), "https:") && !errors.Is(live, want) || !strings.HasPrefix(strings.ToLower(raw), "https:") && live == nil {
				t.Errorf("%q in live mode: %v, of which test mode says %v", raw, live, want)
			}
		}
	}
	if err := g.CheckURL(t.Context(), "http://public.test/", true); !errors.Is(err, ErrScheme) {
		t.Errorf("http in live mode: %v", err)
	}
}

var exceptions = regexp.MustCompile(`(?m)^            cidr: (0\.0\.0\.0/0|2000::/3)\n            except:\n((?:            - .+\n)+)`)

// The network policies of the chart, of each service that reaches public networks, exclude exactly the ranges that the guard
// blocks.
func TestTheChartsPolicyIsTheGuards(t *testing.T) {
	t.Parallel()
	refused := map[string][]netip.Prefix{"0.0.0.0/0": refused4, "2000::/3": refused6}
	blocks := 0
	for _, s := range proto.Services() {
		if len(s.Reaches) > 0 {
			blocks += len(refused)
		}
	}
	for _, golden := range []string{"default", "dev", "production"} {
		rendered, err := os.ReadFile("../../charts/testdata/" + golden + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		found := exceptions.FindAllStringSubmatch(string(rendered), -1)
		if len(found) != blocks || blocks == 0 {
			t.Fatalf("%s: %d blocks with exceptions, want %d", golden, len(found), blocks)
		}
		for _, block := range found {
			excepted := map[netip.Prefix]bool{}
			for _, line := range strings.Fields(strings.ReplaceAll(block[2], "- ", "")) {
				excepted[netip.MustParsePrefix(strings.Trim(line, `"`))] = true
			}
			if len(excepted) != len(refused[block[1]]) {
				t.Errorf("%s excepts %d ranges of %s, the guard refuses %d", golden, len(excepted), block[1], len(refused[block[1]]))
			}
			for _, p := range refused[block[1]] {
				if !excepted[p] {
					t.Errorf("%s lets %s through, which the guard refuses", golden, p)
				}
			}
		}
	}
}

// dialled returns the host and port that net/http would dial for a URL, or an empty string if it would not dial.
func dialled(t *testing.T, raw string) (host, port string) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, raw, http.NoBody)
	if err != nil {
		return "", ""
	}
	stop := errors.New("as far as this")
	tr := &http.Transport{DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
		host, port, _ = net.SplitHostPort(address)
		return nil, stop
	}}
	res, err := tr.RoundTrip(req)
	if err == nil {
		_ = res.Body.Close()
	}
	return host, port
}

// The dialer allows the same addresses as CheckURL. It blocks private addresses in any form.
func TestDialerMatchesCheckURL(t *testing.T) {
	t.Parallel()
	g := newGuard(t)
	for want, list := range urls {
		for _, raw := range list {
			host, port := dialled(t, raw)
			addrs, _ := testNames.LookupNetIP(t.Context(), "ip", host)
			if literal, err := netip.ParseAddr(host); err == nil {
				addrs = []netip.Addr{literal}
			}
			var refused []netip.Addr
			for _, a := range addrs {
				network := map[bool]string{true: "tcp4", false: "tcp6"}[a.Unmap().Is4()]
				if err := g.control(network, net.JoinHostPort(a.String(), port), nil); err != nil {
					refused = append(refused, a)
				}
			}
			if want == nil && len(refused) > 0 || errors.Is(want, ErrPrivate) && len(refused) == 0 && len(addrs) > 0 {
				t.Errorf("%q (%v) leads to %v, of which the dialler refuses %v", raw, want, addrs, refused)
			}
			if want == nil && host == "" {
				t.Errorf("%q is accepted and cannot be dialled", raw)
			}
		}
	}
}

// special reports whether an address is in a range that must be blocked according to RFC 6890 and IANA.
func special(a netip.Addr) bool {
	a = a.Unmap()
	for _, p := range []string{"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4"} {
		if netip.MustParsePrefix(p).Contains(a) {
			return true
		}
	}
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified()
}

func TestNoSpecialAddressIsAccepted(t *testing.T) {
	t.Parallel()
	g := newGuard(t)
	first := rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte{0, 10, 100, 127, 169, 172, 192, 198, 203, 224, 255}))
	second := rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte{0, 16, 18, 31, 51, 64, 88, 168, 254}))
	rapid.Check(t, func(t *rapid.T) {
		v4 := netip.AddrFrom4([4]byte{first.Draw(t, "a"), second.Draw(t, "b"), rapid.Byte().Draw(t, "c"), rapid.Byte().Draw(t, "d")})
		b := v4.As4()
		for _, raw := range []string{v4.String(), "[::ffff:" + v4.String() + "]", fmt.Sprintf("[::ffff:%x:%x]", int(b[0])<<8|int(b[1]), int(b[2])<<8|int(b[3]))} {
			err := g.CheckURL(t.Context(), "http://"+raw+"/", false)
			if special(v4) && !errors.Is(err, ErrPrivate) {
				t.Fatalf("%s: %v", raw, err)
			}
		}
		n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
		for _, raw := range []string{
			fmt.Sprint(n), fmt.Sprintf("0x%x", n), fmt.Sprintf("0%o", n), fmt.Sprintf("0x%x.%d", b[0], n&0xffffff), fmt.Sprintf("%d.0x%x", b[0], n&0xffffff),
			fmt.Sprintf("0%o.%d.%d.%d", b[0], b[1], b[2], b[3]), fmt.Sprintf("%d.%d.%d", b[0], b[1], n&0xffff), v4.String() + ".",
		} {
			if err := g.CheckURL(t.Context(), "http://"+raw+"/", false); !errors.Is(err, ErrForm) {
				t.Fatalf("%s: %v", raw, err)
			}
		}
		inside := netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "IPv6")))
		err := g.CheckURL(t.Context(), "http://["+inside.String()+"]/", false)
		if (special(inside) || inside.Unmap().Is6() && inside.As16()[0]>>5 != 1) && !errors.Is(err, ErrPrivate) {
			t.Fatalf("%s: %v", inside, err)
		}
	})
}

func TestAllowedRanges(t *testing.T) {
	t.Parallel()
	g := newGuard(t, "127.0.0.0/8", "10.1.2.3/16", "fd00:1::/32")
	for raw, want := range map[string]error{
		"http://127.0.0.1:5000/": nil, "http://127.255.255.255:1/": nil, "https://127.0.0.1/": nil, "http://[::ffff:127.0.0.1]:5000/": nil, "http://[::ffff:7f00:1]:22/": nil,
		"http://10.1.0.0:65535/": nil, "http://10.1.255.255/": nil, "http://10.2.0.0/": ErrPrivate, "http://10.0.255.255:8080/": ErrPrivate,
		"http://[fd00:1::5]:9/": nil, "http://[fd00:2::5]/": ErrPrivate, "http://[::1]/": ErrPrivate, "http://[::127.0.0.1]/": ErrPrivate, "http://[64:ff9b::7f00:1]/": ErrPrivate,
		"http://192.168.0.1/": ErrPrivate, "http://93.184.215.14/": nil, "http://93.184.215.14:5000/": ErrPrivate, "http://0.0.0.0:5000/": ErrPrivate,
		"http://2130706433/": ErrForm, "http://127.1:5000/": ErrForm, "http://127.0.0.1:0/": ErrForm, "http://u@127.0.0.1/": ErrForm, "ftp://127.0.0.1/": ErrSchemes,
		"http://mapped.test:5000/": nil, "http://localhost:5000/": ErrPrivate, "http://nowhere.test:5000/": nil, "http://public.test:5000/": ErrPrivate,
	} {
		if err := g.CheckURL(t.Context(), raw, false); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", raw, err, want)
		}
	}
	if err := g.CheckURL(t.Context(), "http://127.0.0.1/", true); !errors.Is(err, ErrScheme) {
		t.Errorf("http in live mode: %v", err)
	}
	both := newGuard(t, "127.0.0.0/8", "::1/128")
	if err := both.CheckURL(t.Context(), "http://localhost:5000/", false); err != nil {
		t.Errorf("localhost when both of its addresses are allowed: %v", err)
	}
}

func TestNewGuardRefusesWhatIsNoRange(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "10.0.0.0", "10.0.0.0/33", "localhost", "10.0.0.0/8,127.0.0.0/8", "fe80::/10%eth0"} {
		if _, err := NewGuard("ALLOWED_CIDRS", []string{"127.0.0.0/8", text}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	g := newGuard(t, "127.0.0.0/8")
	for _, tc := range []struct {
		network, address string
		ok               bool
	}{
		{"tcp4", "93.184.215.14:443", true},
		{"tcp6", "[2606:4700:4700::1111]:80", true},
		{"tcp4", "127.0.0.1:6379", true},
		{"tcp4", "93.184.215.14:22", false},
		{"tcp4", "10.0.0.1:443", false},
		{"tcp6", "[::1]:443", false},
		{"tcp6", "[fe80::1%eth0]:443", false},
		{"tcp6", "[2606:4700:4700::1111%eth0]:443", false},
		{"tcp", "93.184.215.14:443", false},
		{"udp4", "93.184.215.14:443", false},
		{"unix", "/var/run/docker.sock", false},
		{"tcp4", "public.test:443", false},
		{"tcp4", "", false},
	} {
		if err := g.control(tc.network, tc.address, nil); (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrRefused) {
			t.Errorf("%s %s: %v", tc.network, tc.address, err)
		}
	}
}

// slow is a Resolver that responds after the time that CheckURL waits, or when its context ends.
type slow struct{}

func (slow) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Minute):
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
}

// A name that takes long to resolve is treated like one that does not resolve now.
func TestCheckURLTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		g.Resolver = slow{}
		start := time.Now()
		if err := g.CheckURL(t.Context(), "https://slow.test/", true); err != nil || time.Since(start) != resolveTimeout {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
