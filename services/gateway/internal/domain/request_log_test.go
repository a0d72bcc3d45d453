package domain_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast.dev/services/gateway/internal/domain"
)

func TestLoggedPath(t *testing.T) {
	t.Parallel()
	const id, other = "bk_01k00000000000000000000001", "pay_01k00000000000000000000001"
	for _, tc := range []struct{ route, path, logged, object string }{
		{"/bookings", "/bookings", "/bookings", ""},
		{"/bookings/{id}", "/bookings/" + id, "/bookings/" + id, id},
		{"/bookings/{id}/cancel", "/bookings/" + id + "/cancel", "/bookings/" + id + "/cancel", id},
		{"/invoices/{id}/payments/{payment_id}/reverse", "/invoices/" + id + "/payments/" + other + "/reverse", "/invoices/" + id + "/payments/" + other + "/reverse", id},
		{"/invoices/{id}/payments/{payment_id}/reverse", "/invoices/" + id + "/payments/ada/reverse", "/invoices/" + id + "/payments/{payment_id}/reverse", id},
		{"/customers/{id}", "/customers/ada%40example.com", "/customers/{id}", ""},
		{"/customers/{id}", "/customers/ada_lovelace", "/customers/{id}", ""},
		{"/customers/{id}", "/customers/cu_", "/customers/{id}", ""},
		{"/customers/{id}/export", "/customers/+49%20301234567/export", "/customers/{id}/export", ""},
		{"/payment-intents/{id}", "/payment-intents/pi_3PqRsT2eZvKYlo2C0aBcDeFg", "/payment-intents/pi_3PqRsT2eZvKYlo2C0aBcDeFg", "pi_3PqRsT2eZvKYlo2C0aBcDeFg"},
		{"/payment-intents/{id}", "/payment-intents/pi_" + strings.Repeat("x", 65), "/payment-intents/{id}", ""},
	} {
		if logged, object := domain.LoggedPath(tc.route, tc.path); logged != tc.logged || object != tc.object {
			t.Errorf("%s: %q, %q", tc.path, logged, object)
		}
	}
}

func TestQueryNames(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][]string{
		"":                           nil,
		"limit=10&status=pending":    {"limit", "status"},
		"status=a&status=b":          {"status"},
		"metadata%5Border%5D=17":     {"metadata[order]"},
		"ada@example.com":            nil,
		"ada%40example.com=1":        nil,
		"%zz=1&limit":                {"limit"},
		strings.Repeat("a", 65):      nil,
		strings.Repeat("a", 64):      {strings.Repeat("a", 64)},
		"Ada+Lovelace=1&expand=none": {"expand"},
	} {
		if got := domain.QueryNames(nil, raw); !slices.Equal(got, want) {
			t.Errorf("%q: %q", raw, got)
		}
	}
	var many []string
	for i := range 30 {
		many = append(many, strings.Repeat("a", i+1))
	}
	if got := domain.QueryNames(nil, strings.Join(many, "&")); len(got) != 20 {
		t.Errorf("%d names", len(got))
	}
}

func TestClientNetwork(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"203.0.113.77": "203.0.113.0/24", "::ffff:203.0.113.77": "203.0.113.0/24", "2001:db8:1:2:3:4:5:6": "2001:db8:1::/48", "fe80::1%eth0": "fe80::/48", "@": "",
	} {
		if got := domain.ClientNetwork(address); got != want {
			t.Errorf("%q: %q", address, got)
		}
	}
}

func TestTextsOfClients(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "curl/8": "curl/8", "a\x00b\nc": "abc", "caf\xe9": "caf", strings.Repeat("é", 300): strings.Repeat("é", 200), strings.Repeat("a", 2000): strings.Repeat("a", 200),
	} {
		if got := domain.LoggedUserAgent(in); got != want || !utf8.ValidString(got) {
			t.Errorf("%q: %q", in, got)
		}
	}
	if got := domain.LoggedParam(strings.Repeat("é", 300)); got != strings.Repeat("é", 100) {
		t.Errorf("%d characters", utf8.RuneCountInString(got))
	}
	for agent, want := range map[string]string{
		"holdfast-go/1.0.0": "holdfast-go/1.0.0", "holdfast-python/1.0.0 httpx/0.28": "holdfast-python/1.0.0", "holdfast/1.0.0": "holdfast/1.0.0", "curl/8": "",
		"holdfast": "", "holdfast-go/" + strings.Repeat("1", 60): "", "holdfast go/1": "",
	} {
		if got := domain.SDKVersion(agent); got != want {
			t.Errorf("%q: %q", agent, got)
		}
	}
}
