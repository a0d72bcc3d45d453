// Command gateway is the one door of the public API: credentials, limits, scopes and replays, then the
// service that answers.
package main

import (
	"context"

	"holdfast.dev/libs/service"
)

func main() {
	var cfg Config
	service.Main(service.App{
		Name:   "gateway",
		Config: &cfg,
		Serve:  func(_ context.Context, rt *service.Runtime) error { return wire(rt, cfg) },
	})
}
