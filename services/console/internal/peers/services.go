// Package peers calls the services: each operation of the contracts through one function.
package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"holdfast.dev/libs/peer"

	"holdfast.dev/services/console/internal/domain"
)

// Services are the services that the console calls, by name.
type Services struct {
	Operations domain.Operations
	Clients    map[string]*peer.Client
}

// Call makes a request for the caller in ctx and returns the body of the response. If the operator lacks a scope or permission,
// the error is ErrForbidden, and nothing is sent. Other errors are those of the service.
func (s *Services) Call(ctx context.Context, r domain.Request) (json.RawMessage, error) {
	op, path, err := s.prepare(ctx, r)
	if err != nil {
		return nil, err
	}
	options := []peer.Option{peer.Header("Prefer", "handling=strict")}
	if r.Key != "" {
		options = append(options, peer.IdempotencyKey(r.Key))
	}
	if r.Version != 0 {
		options = append(options, peer.Header("If-Match", `"`+strconv.FormatInt(r.Version, 10)+`"`))
	}
	var out json.RawMessage
	err = s.Clients[op.Service].Do(ctx, op.Method, path, r.Body, &out, options...)
	return out, err
}

// Open makes a read for the caller in ctx and returns the unread body of the response, with its media type. The caller closes it.
func (s *Services) Open(ctx context.Context, r domain.Request, accept string) (body io.ReadCloser, mediaType string, err error) {
	op, path, err := s.prepare(ctx, r)
	if err != nil {
		return nil, "", err
	}
	res, err := s.Clients[op.Service].Open(ctx, path, peer.Header("Accept", accept))
	if err != nil {
		return nil, "", err
	}
	return res.Body, res.Header.Get("Content-Type"), nil
}

// prepare finds the operation, checks that the operator is allowed to call it, and builds its address.
func (s *Services) prepare(ctx context.Context, r domain.Request) (*domain.Operation, string, error) {
	op := s.Operations[r.Operation]
	if op == nil || len(r.Params) != len(op.PathParams) {
		return nil, "", fmt.Errorf("no operation %q with %d parameters", r.Operation, len(r.Params))
	}
	if err := op.Allowed(ctx); err != nil {
		return nil, "", err
	}
	return op, op.Address(r.Params, r.Query), nil
}

// Stream opens a stream of server-sent events for the caller in ctx, after the event with that id; "": new events only.
func (s *Services) Stream(ctx context.Context, operation, last string) (io.ReadCloser, error) {
	op, path, err := s.prepare(ctx, domain.Request{Operation: operation})
	if err != nil {
		return nil, err
	}
	options := []peer.Option{peer.Header("Accept", "text/event-stream")}
	if last != "" {
		options = append(options, peer.Header("Last-Event-ID", last))
	}
	res, err := s.Clients[op.Service].Open(ctx, path, options...)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}
