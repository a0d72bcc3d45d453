package oauth

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
)

// serverMetadata returns the metadata of the server: RFC 8414.
func (s *Server) serverMetadata(c *gin.Context) error {
	return s.document(c, map[string]any{
		"issuer":                                         s.AuthURL,
		"authorization_endpoint":                         s.AuthURL + "/oauth/authorize",
		"token_endpoint":                                 s.AuthURL + "/oauth/token",
		"revocation_endpoint":                            s.AuthURL + "/oauth/revoke",
		"registration_endpoint":                          s.AuthURL + "/oauth/register",
		"pushed_authorization_request_endpoint":          s.AuthURL + "/oauth/par",
		"scopes_supported":                               s.App.Scopes,
		"response_types_supported":                       []string{responseCode},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          grantTypes,
		"code_challenge_methods_supported":               []string{methodS256},
		"token_endpoint_auth_methods_supported":          []string{methodNone},
		"revocation_endpoint_auth_methods_supported":     []string{methodNone},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          true,
		"ui_locales_supported":                           s.messages.Languages(),
		"service_documentation":                          s.PublicURL + "/docs",
	})
}

// resourceMetadata returns a handler for the metadata of the resource at a path below the public URL: RFC 9728.
func (s *Server) resourceMetadata(path, docs string) httpx.Handler {
	return func(c *gin.Context) error {
		return s.document(c, map[string]any{
			"resource":                 s.PublicURL + path,
			"resource_name":            "Holdfast",
			"authorization_servers":    []string{s.AuthURL},
			"scopes_supported":         s.App.Scopes,
			"bearer_methods_supported": []string{"header"},
			"resource_documentation":   s.PublicURL + docs,
		})
	}
}

func (s *Server) document(c *gin.Context, body map[string]any) error {
	c.Header("Cache-Control", "public, max-age=300")
	c.JSON(http.StatusOK, body)
	return nil
}
