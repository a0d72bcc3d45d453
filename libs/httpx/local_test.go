package httpx_test

import (
	"testing"

	"holdfast.dev/libs/httpx"
)

func TestLocal(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"/admin", "/admin/", "/admin/demo/test/today", "/admin/demo/test/bookings?status=pending&cursor=a%2Fb", "/admin?x=//evil"} {
		if got := httpx.Local(good, "/admin"); got != good {
			t.Errorf("%q: %q", good, got)
		}
	}
	for _, bad := range []string{
		"", "/", "admin", "//evil", "//evil/admin", "///admin", "https://evil/admin", "javascript:alert(1)", "/adminx", "/admin/../oauth/authorize", "/admin/%2e%2e/oauth",
		"/admin\\evil", "\\\\evil/admin", "/admin/\\evil", "/admin/%5c%5cevil", "/admin//evil", "/admin/%2f%2fevil", "/%2f%2fevil", " /admin", "/admin\n", "/admin\x00", "/admin/%0d%0aSet-Cookie:x",
		"https:/admin", "http:///admin", "/admin#x", "user@evil/admin", "//user@evil/admin", "?to=/admin", "/Admin", "/admin/./x",
	} {
		if got := httpx.Local(bad, "/admin"); got != "" {
			t.Errorf("%q: %q", bad, got)
		}
	}
}
