package peers_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/peer"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/peers"
)

// silent is a network on which no service responds.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Erasures and measurements use the same client of a service, and each call waits for as long as its work can take.
func TestTimeoutsOfCalls(t *testing.T) {
	t.Parallel()
	keys, err := caller.ParseKeys("logs=k1:" + strings.Repeat("0123456789abcdef", 4))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		client := &peer.Client{Target: "logs", BaseURL: "http://logs.test", Signer: &caller.Signer{From: "identity", Keys: keys}, HTTP: &http.Client{Transport: silent{}}}
		erasure, usage, tenant := &peers.Erasure{Client: client}, &peers.Usage{Client: client}, ids.New[ids.TenantPrefix]()
		for name, c := range map[string]struct {
			want time.Duration
			call func(ctx context.Context) error
		}{
			"preparation": {10 * time.Second, func(ctx context.Context) error { _, err := erasure.Prepare(ctx, tenant); return err }},
			"step":        {10 * time.Second, func(ctx context.Context) error { _, err := erasure.Step(ctx, tenant); return err }},
			"measurement": {55 * time.Second, func(ctx context.Context) error {
				_, err := usage.Measure(ctx, time.Now(), []ids.Tenant{tenant})
				return err
			}},
			"running day": {3 * time.Second, func(ctx context.Context) error {
				_, err := usage.Current(ctx, time.Now())
				return err
			}},
			"background work": {3 * time.Second, func(ctx context.Context) error { _, err := usage.Work(ctx); return err }},
		} {
			start := time.Now()
			err := c.call(caller.With(t.Context(), caller.Service("identity", domain.PlatformTenant, caller.Live)))
			if took := time.Since(start); !errors.Is(err, apperr.ErrTimeout) || took != c.want {
				t.Errorf("%s: %v after %s, want %s", name, err, took, c.want)
			}
		}
	})
}
