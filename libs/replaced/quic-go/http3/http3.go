// Package http3 replaces the server for HTTP/3, which gin imports.
package http3

import (
	"errors"
	"net/http"
)

// ListenAndServeQUIC returns an error, because services do not serve HTTP/3.
func ListenAndServeQUIC(_, _, _ string, _ http.Handler) error {
	return errors.ErrUnsupported
}
