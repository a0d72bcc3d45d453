package api

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/api/assistant"
	"holdfast.dev/services/gateway/internal/domain"
)

// mcpPath is the endpoint of the Model Context Protocol, which assistants call.
const mcpPath = "/mcp"

// mcpOperation is the endpoint in the form that the checks of a request know. Any valid credential can call it: the requests of a tool
// need the scopes. It is not in the contract, because the Model Context Protocol specifies its messages.
var mcpOperation = &contract.Operation{ID: "mcp", Method: http.MethodPost, Path: mcpPath}

// mountMCP registers the endpoint. It has no sessions and no streams, so GET and DELETE return 405.
func (s *Server) mountMCP(router *gin.Engine) {
	steps := httpx.Steps(
		s.routeMCP,
		rejectQueryKey,
		s.checkOrigin,
		s.challenge(s.authenticate),
		s.challenge(s.limitRate),
		s.readBody,
		s.challenge(s.assist),
	)
	for _, path := range []string{mcpPath, mcpPath + "/"} { // some clients add a slash to the URL of a server
		mount(router, path, map[string]gin.HandlersChain{http.MethodPost: steps}, s.preflight)
	}
}

// base returns the URL at which clients reach the gateway, without a slash at the end.
func (s *Server) base() string { return strings.TrimSuffix(s.PublicURL, "/") }

func (s *Server) routeMCP(c *gin.Context) error {
	obs.SetRoute(c.Request.Context(), mcpPath)
	c.Set(requestKey, &request{op: mcpOperation, id: httpx.RequestID(c), path: mcpPath, address: s.address(c.Request)})
	return nil
}

// checkOrigin rejects a message from a page whose origin no app has registered. The protocol requires this check against pages that rebind
// their name to the address of a server.
func (s *Server) checkOrigin(c *gin.Context) error {
	r := c.Request
	origin := r.Header.Get("Origin")
	if origin == "" || origin == s.base() {
		return nil
	}
	if err := s.Pipeline.Count(r.Context(), "identity:"+domain.Network(of(c).address), s.Pipeline.Browsers); err != nil {
		return err
	}
	registered, err := s.Pipeline.Origins.Registered(r.Context(), origin)
	if err != nil || registered {
		return err
	}
	return domain.ErrOrigin
}

// challenge tells the client of an endpoint that rejects its credential where to get another one: RFC 9728, section 5.1. The metadata are
// those of the path that the client used, because it rejects those of another one.
func (s *Server) challenge(h httpx.Handler) httpx.Handler {
	return func(c *gin.Context) error {
		err := h(c)
		if err == nil {
			return nil
		}
		e := apperr.As(err)
		metadata := `Bearer resource_metadata="` + s.base() + `/.well-known/oauth-protected-resource` + c.FullPath() + `"`
		switch {
		case e.Kind != apperr.Unauthenticated:
			return err
		case e.Code == domain.ErrMissing.Code:
			return e.WithHeader("WWW-Authenticate", metadata)
		default:
			return e.WithHeader("WWW-Authenticate", metadata+`, error="invalid_token"`)
		}
	}
}

// assist responds to the message.
func (s *Server) assist(c *gin.Context) error {
	q := of(c)
	token, err := domain.Bearer(c.Request.Header["Authorization"])
	if err != nil {
		return err
	}
	end, err := s.Pipeline.Assistants.Begin(q.credential)
	if err != nil {
		return err
	}
	defer end()
	return s.Assistant.Serve(c.Writer, c.Request, assistant.Client{Token: token, Caller: &q.credential.Caller, Version: q.credential.Version}, q.body)
}
