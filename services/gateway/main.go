// Command gateway receives every request of the public API. It checks the credential, rate limit, scope and idempotency key, and
// forwards the request to the service.
package main

import (
	"context"

	"holdfast.dev/libs/service"
)

func main() {
	cfg := Config{bounds: standard}
	service.Main(service.App{
		Name:   "gateway",
		Config: &cfg,
		Serve:  func(_ context.Context, rt *service.Runtime) error { return wire(rt, cfg) },
	})
}
