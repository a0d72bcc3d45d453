package httpx

import (
	"net/url"
	"strings"
)

// Local returns an address of this host that is below a path, with its query: /admin/today?days=30 below /admin. It returns "" for
// every other address: one with a scheme or a host, one outside the path, or one that a browser could interpret differently (RFC
// 9700, section 4.11, on open redirection).
func Local(address, under string) string {
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }) {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || u.Fragment != "" {
		return ""
	}
	if u.Path != under && !strings.HasPrefix(u.Path, under+"/") || strings.Contains(u.Path, "//") || strings.ContainsAny(u.Path, "\\\r\n") {
		return ""
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return ""
		}
	}
	return address
}
