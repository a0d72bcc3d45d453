// Command example is the smallest service: it serves health checks only.
package main

import (
	"context"
	"net/http"

	"holdfast.dev/libs/service"
)

func main() {
	service.Main(service.App{
		Name: "example",
		Serve: func(_ context.Context, rt *service.Runtime) error {
			rt.HTTP(rt.Common.HTTPAddr, http.NotFoundHandler())
			return nil
		},
	})
}
