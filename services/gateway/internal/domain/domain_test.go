package domain_test

import (
	"testing"

	"holdfast.dev/services/gateway/internal/domain"
)

func TestNetwork(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"2001:db8:1:2::": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", "::1": "::/64", "pipe": "pipe",
	} {
		if got := domain.Network(address); got != want {
			t.Errorf("%s counts as %s, want %s", address, got, want)
		}
	}
}
