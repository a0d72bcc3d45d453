// Package assistant serves the tools of sdks/tools over the Streamable HTTP transport of the Model Context Protocol. It has no sessions:
// each message is one POST, with the credential of the client. The tools send their requests to the gateway itself, so every check of the
// API applies to them.
package assistant

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/cache"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/command"
	"holdfast.dev/proto"
	holdfast "holdfast.dev/sdks/go"
	"holdfast.dev/sdks/tools"

	"holdfast.dev/services/gateway/internal/domain"
)

const (
	// serverTTL is how long the tenant's name and time zone are used before they are read again.
	serverTTL = 5 * time.Minute
	// maxServers is the maximum number of credentials whose tools are kept in memory.
	maxServers = 1000
	// readTimeout limits a request that reads, with its retries, so that a tool does not wait long for the rate limit.
	readTimeout = 10 * time.Second
)

// toWrite is what a user must do to get the tools that change data.
const toWrite = "connect this server again and allow it to change data, or use a credential with write scopes"

// Client is the sender of a message: a credential that the gateway has checked.
type Client struct {
	Token   string // the credential as it was sent
	Caller  *caller.Caller
	Version int64 // of the principal
}

// key identifies a credential in one version, so that a change of its scopes takes effect immediately.
type key struct {
	hash    [sha256.Size]byte
	version int64
}

// Endpoint serves messages. The zero value is not usable.
type Endpoint struct {
	loop     loop
	baseURL  string
	remedies map[string]string
	servers  cache.Cache[key, *mcp.Server]
	handler  http.Handler
}

// New returns an endpoint whose tools send their requests to the handler gateway. publicURL is the URL at which clients reach it.
func New(publicURL string, gateway http.Handler, log *slog.Logger) *Endpoint {
	e := &Endpoint{
		loop: loop{gateway}, baseURL: publicURL + "/api/v1", remedies: map[string]string{},
		servers: cache.New[key](cache.Options[*mcp.Server]{Size: maxServers, TTL: serverTTL}),
	}
	for _, code := range proto.ErrorCodes {
		e.remedies[code.Code] = code.Remedy
	}
	e.handler = mcp.NewStreamableHTTPHandler(serverOf, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, Logger: log,
		// The gateway checks Origin, and without a credential a page that rebinds its name gets nothing. Behind a proxy on the same
		// machine, the name in Host is never local.
		DisableLocalhostProtection: true,
	})
	return e
}

type (
	serverKey  struct{}
	requestKey struct{}
)

func serverOf(r *http.Request) *mcp.Server {
	server, _ := r.Context().Value(serverKey{}).(*mcp.Server)
	return server
}

// ErrBatch rejects several messages in one body, which the protocol allows only up to version 2025-03-26: their number would be unbounded.
var ErrBatch = apperr.New(apperr.BadRequest, "malformed_json", "The body must be one JSON-RPC message. Batches are not supported.")

// Serve responds to the message in body, which r was read from. An error means that nothing was written.
func (e *Endpoint) Serve(w http.ResponseWriter, r *http.Request, from Client, body []byte) error {
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		return ErrBatch
	}
	ctx := context.WithValue(r.Context(), requestKey{}, r)
	server, err := e.server(ctx, from)
	if err != nil {
		return err
	}
	message := r.WithContext(context.WithValue(ctx, serverKey{}, server))
	message.Body = io.NopCloser(bytes.NewReader(body))
	respond(e.handler, w, message)
	return nil
}

// server returns the tools of a credential. Its first message reads the tenant.
func (e *Endpoint) server(ctx context.Context, from Client) (*mcp.Server, error) {
	k := key{sha256.Sum256([]byte(from.Token)), from.Version}
	if server, ok := e.servers.Get(k); ok {
		return server, nil
	}
	client, err := holdfast.New(holdfast.WithBaseURL(e.baseURL), holdfast.WithAPIKey(from.Token),
		holdfast.WithHTTPClient(&http.Client{Transport: e.loop}), holdfast.WithDefaults(holdfast.WithTimeout(readTimeout)))
	if err != nil {
		return nil, fmt.Errorf("assistant: %w", err)
	}
	server, err := tools.New(ctx, tools.Config{
		Client: client, Writes: tools.CanWrite(from.Caller.Scopes), ToWrite: toWrite, Remedies: e.remedies, Version: command.Version(),
	})
	if err != nil {
		return nil, refusal(err)
	}
	e.servers.Set(k, server)
	return server, nil
}

// retryAfter returns the wait that a response asks for, at least a second.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil {
		seconds = 1
	}
	return time.Duration(max(seconds, 1)) * time.Second
}

// refusal returns the error with which the first requests of a credential ended. The endpoint has just checked the credential, so anything
// but a revocation in between and the rate limit is an outage.
func refusal(err error) error {
	var api *holdfast.Error
	if !errors.As(err, &api) {
		return apperr.ErrUnavailable.WithCause(err)
	}
	switch api.Status {
	case http.StatusUnauthorized:
		if api.Code == holdfast.ErrExpiredCredential {
			return domain.ErrExpired.WithMessage("%s", api.Message).WithCause(err)
		}
		return domain.ErrRevoked.WithCause(err)
	case http.StatusTooManyRequests:
		return domain.ErrRate.WithRetryAfter(retryAfter(api.Header)).WithCause(err)
	}
	return apperr.ErrUnavailable.WithCause(err)
}
