// Command console serves the operators' area: pages where operators run their business and developers troubleshoot.
package main

import (
	"context"

	"holdfast.dev/libs/service"
)

func main() {
	var cfg Config
	service.Main(service.App{
		Name:   "console",
		Config: &cfg,
		Serve:  func(_ context.Context, rt *service.Runtime) error { return wire(rt, cfg) }, //nolint:contextcheck // each request has its own context
	})
}
