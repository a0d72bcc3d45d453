// Command console is the operators' area: pages with which operators run their business, and developers find what went wrong.
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
