package domain_test

import (
	"strings"
	"testing"

	"holdfast.dev/services/payments/internal/domain"
)

func TestKeysOfAnAccount(t *testing.T) {
	t.Parallel()
	long := func(prefix string, n int) string { return prefix + strings.Repeat("x", n-len(prefix)) }
	for name, c := range map[string]struct {
		secret, publishable, webhook string
		live, ok                     bool
	}{
		"test":                         {"sk_test_1", "pk_test_1", "", false, true},
		"live":                         {"sk_live_1", "pk_live_1", "whsec_1", true, true},
		"restricted":                   {"rk_test_1", "pk_test_1", "", false, true},
		"live keys in test":            {"sk_live_1", "pk_live_1", "", false, false},
		"test keys in live":            {"sk_test_1", "pk_test_1", "", true, false},
		"only a prefix":                {"sk_test_", "pk_test_1", "", false, false},
		"the longest":                  {long("sk_test_", 255), "pk_test_1", long("whsec_", 255), false, true},
		"a secret key that is longer":  {long("sk_test_", 256), "pk_test_1", "", false, false},
		"a signing secret, too long":   {"sk_test_1", "pk_test_1", long("whsec_", 256), false, false},
		"not a signing secret":         {"sk_test_1", "pk_test_1", "sk_test_1", false, false},
		"a secret key that is not one": {"pk_test_1", "pk_test_1", "", false, false},
	} {
		err := domain.Keys{Secret: domain.Secret(c.secret), Publishable: c.publishable, Webhook: domain.Secret(c.webhook)}.Check(c.live)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLast4 checks that the end of a secret is shown only if it reveals little.
func TestLast4(t *testing.T) {
	t.Parallel()
	for secret, want := range map[string]string{"": "", "abcdefghijkl": "", "abcdefghijklm": "jklm"} {
		if got := domain.Last4(secret); got != want {
			t.Errorf("%q: %q", secret, got)
		}
	}
}
