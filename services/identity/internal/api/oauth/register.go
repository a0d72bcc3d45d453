package oauth

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/identity/internal/domain"
)

const (
	maxRegistration = 64 << 10 // bytes of a registration's body
	methodNone      = "none"   // the only authentication method of clients: none, because all are public
)

// metadata describes a client in a registration and its response: RFC 7591, section 2. Other members are ignored.
type metadata struct {
	ClientID      string   `json:"client_id,omitempty"`
	IssuedAt      int64    `json:"client_id_issued_at,omitempty"` // seconds since 1970
	ClientName    string   `json:"client_name"`
	RedirectURIs  []string `json:"redirect_uris"`
	AuthMethod    string   `json:"token_endpoint_auth_method"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
	Scope         string   `json:"scope"`
}

// registrationError is an error of the registration: RFC 7591, section 3.2.2.
type registrationError struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

func (e *registrationError) Error() string { return e.Code + ": " + e.Description }

func wrongMetadata(description string) error {
	return &registrationError{"invalid_client_metadata", description}
}

func wrongRedirects(description string) error {
	return &registrationError{"invalid_redirect_uri", description}
}

// register registers a public client that asks for it: RFC 7591, section 3. Operators see at each consent that it is not verified.
func (s *Server) register(c *gin.Context) error {
	ctx := c.Request.Context()
	c.Header("Cache-Control", "no-store")
	in, err := readRegistration(c.Writer, c.Request)
	if err == nil {
		err = in.complete(s.App.Scopes)
	}
	var wrong *registrationError
	if errors.As(err, &wrong) {
		obs.Add(ctx, slog.String("oauth_error", wrong.Code))
		c.JSON(http.StatusBadRequest, wrong)
		return nil
	}
	registered, err := s.App.RegisterApp(ctx, in.ClientName, in.RedirectURIs, strings.Fields(in.Scope), networkOf(c.Request.Header.Get("X-Forwarded-For")))
	if err != nil {
		return unavailable(c.Writer, apperr.As(err))
	}
	in.ClientID, in.IssuedAt = registered.ID.String(), registered.CreatedAt.Unix()
	obs.Add(ctx, slog.String("client_id", in.ClientID))
	c.JSON(http.StatusCreated, in)
	return nil
}

func readRegistration(w http.ResponseWriter, r *http.Request) (in metadata, err error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return in, wrongMetadata("The body must be application/json.")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRegistration))
	if err != nil {
		return in, wrongMetadata("The body is incomplete or larger than 64 KiB.")
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, wrongMetadata("The body must be a JSON object with the members of RFC 7591, section 2.")
	}
	return in, nil
}

// complete checks the members of a registration, and sets those that the client left out.
func (m *metadata) complete(scopes []string) error {
	if len(m.RedirectURIs) == 0 || len(m.RedirectURIs) > domain.MaxRedirects {
		return wrongRedirects("redirect_uris must have 1 to 20 URIs.")
	}
	for _, uri := range m.RedirectURIs {
		if !domain.CanRegisterRedirect(uri) {
			return wrongRedirects(printable(uri) + " must be https, or http on 127.0.0.1, [::1] or localhost, without a fragment, a user, and the parameters of a response.")
		}
	}
	if m.AuthMethod != "" && m.AuthMethod != methodNone {
		return wrongMetadata("token_endpoint_auth_method must be none: clients that register themselves are public and use PKCE.")
	}
	if len(m.GrantTypes) > 0 && !slices.Contains(m.GrantTypes, grantTypes[0]) || slices.ContainsFunc(m.GrantTypes, unknownTo(grantTypes)) {
		return wrongMetadata("grant_types must have authorization_code, and can have refresh_token.")
	}
	if slices.ContainsFunc(m.ResponseTypes, unknownTo([]string{responseCode})) {
		return wrongMetadata("response_types must be code.")
	}
	known := domain.KnownScopes(m.Scope, scopes)
	if len(known) == 0 {
		return wrongMetadata("scope has none of the scopes in scopes_supported.")
	}
	name, err := domain.ShownName(m.ClientName, domain.FirstHost(m.RedirectURIs))
	if err != nil {
		return wrongMetadata("client_name must be one visible line of 1 to 60 characters, without the name of the platform.")
	}
	m.ClientName = name
	m.ClientID, m.IssuedAt = "", 0
	m.AuthMethod, m.GrantTypes, m.ResponseTypes, m.Scope = methodNone, grantTypes, []string{responseCode}, strings.Join(known, " ")
	return nil
}

// unknownTo reports whether a value is not in list.
func unknownTo(list []string) func(string) bool {
	return func(value string) bool { return !slices.Contains(list, value) }
}
