package oauth

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ory/fosite"
)

// The paths of the resources below the public URL. They are one resource server: each token is for all of them.
const (
	apiPath = "/api/v1"
	mcpPath = "/mcp"
)

// resources are the paths below the public URL that clients use as a resource, with their documentation. The path of the metadata is derived
// from the path of the resource, and a client rejects metadata of another one, even if only a slash differs: RFC 9728, section 3.3.
var resources = map[string]string{"": "/docs", apiPath: "/docs", mcpPath: "/docs/assistants", mcpPath + "/": "/docs/assistants"}

var wrongTarget = &fosite.RFC6749Error{ErrorField: "invalid_target", CodeField: http.StatusBadRequest}

// checkResources returns invalid_target unless each value of the parameter resource names the resource server: RFC 8707, section 2.
func (s *Server) checkResources(values []string) error {
	for _, value := range values {
		if value != "" && !slices.Contains([]string{s.PublicURL, s.PublicURL + apiPath, s.PublicURL + mcpPath}, canonical(value)) {
			return wrongTarget.WithDescription("The parameter resource must be " + s.PublicURL + mcpPath + ", " + s.PublicURL + apiPath + " or " + s.PublicURL + ".")
		}
	}
	return nil
}

// canonical returns a URI with its scheme and host in lower case, and without a slash at its end.
func canonical(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return uri
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	return strings.TrimSuffix(u.String(), "/")
}
