package main

import "testing"

// TestAdditionalRangesAreForDevelopment checks that ranges for client ID metadata documents are an error on a platform that others reach.
func TestAdditionalRangesAreForDevelopment(t *testing.T) {
	t.Parallel()
	ranges := []string{"127.0.0.0/8"}
	for _, c := range []struct {
		url    string
		ranges []string
		ok     bool
	}{
		{"http://localhost:8080", ranges, true},
		{"http://127.0.0.1:8080", ranges, true},
		{"http://[::1]:8080", ranges, true},
		{"https://auth.example", nil, true},
		{"https://auth.example", ranges, false},
		{"http://auth.example", ranges, false},
		{"https://localhost", ranges, false},
		{"http://localhost:8080", []string{"loopback"}, false},
	} {
		if _, err := documentGuard(Config{AuthURL: c.url, AllowedCIDRs: c.ranges}); (err == nil) != c.ok {
			t.Errorf("%s %v: %v", c.url, c.ranges, err)
		}
	}
}
