package app_test

import (
	"errors"
	"strings"
	"testing"

	"holdfast.dev/services/console/internal/app"
)

func TestRunConcurrently(t *testing.T) {
	t.Parallel()
	first, second := errors.New("first"), errors.New("second")
	done := make(chan struct{})
	for name, tc := range map[string]struct {
		all  []func() error
		want string
	}{
		"nothing": {nil, ""},
		"the first error in order": {[]func() error{
			func() error { <-done; return first },
			func() error { defer close(done); return second }, // it ends before the first
		}, "first"},
		"a panic is an error": {[]func() error{func() error { return nil }, func() error { panic("a part breaks") }}, "panic: a part breaks"},
	} {
		err := app.RunConcurrently(tc.all...)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
