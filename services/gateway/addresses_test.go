package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto"

	"holdfast.dev/services/gateway/internal/app"
)

// Each service that handles an operation has an upstream at the address from the pattern. The start fails with one line for a
// service that is not in proto/services.yaml or has no key.
func TestUpstreamsFollowTheList(t *testing.T) {
	t.Parallel()
	secret := "=k1:" + strings.Repeat("01", 32)
	all := strings.Join(targets(), secret+",") + secret
	for _, c := range []struct {
		name, service, keys, want string
	}{
		{"all are there", targets()[0], all, ""},
		{"one that the list lacks", "billing", all, "served by billing, which proto/services.yaml does not let the gateway call"},
		{"one without a key", targets()[0], strings.TrimPrefix(all, targets()[0]+secret+","), "no caller key for target"},
	} {
		doc := bytes.ReplaceAll(proto.OpenAPI, []byte("x-service: "+targets()[0]), []byte("x-service: "+c.service))
		spec, err := contract.Load(doc)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := caller.ParseKeys(c.keys)
		if err != nil {
			t.Fatal(err)
		}
		created, err := upstreams(Config{Upstreams: peer.Addresses{Pattern: "http://{service}:8080"}, bounds: standard}, spec,
			&caller.Signer{From: "gateway", Keys: keys}, slog.New(slog.DiscardHandler), app.NewMetrics(prometheus.NewRegistry()))
		if c.want == "" && (err != nil || len(created) != len(targets())) {
			t.Errorf("%s: %d upstreams, %v", c.name, len(created), err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
