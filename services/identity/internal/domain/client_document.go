package domain

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The bounds of client ID metadata documents: draft-ietf-oauth-client-id-metadata-document.
const (
	// MaxClientURL is the maximum length of a client_id that is a URL, in bytes.
	MaxClientURL = 500
	// MaxClientDocument is the maximum size of a document, in bytes.
	MaxClientDocument = 16 << 10
	// DocumentTimeout is the time for fetching a document, from the resolution of the name to the last byte.
	DocumentTimeout = 5 * time.Second
	// DocumentsPerMinute is the maximum number of documents that a process fetches for one source in a minute. A source is an operator, or
	// the network of an app that pushes an authorization request.
	DocumentsPerMinute = 20
	// DocumentPlaces is the maximum number of requests that wait for documents at the same time, per process: of signed-in operators, and of
	// apps that push requests.
	DocumentPlaces = 32
	// DocumentPlacesEach is the maximum number of them of one source.
	DocumentPlacesEach = 4
	// FailureMemory is how long a document that could not be used is not fetched again.
	FailureMemory = 10 * time.Second
	// MinDocumentLifetime and MaxDocumentLifetime limit how long a document is used before it is fetched again.
	MinDocumentLifetime = 5 * time.Minute
	MaxDocumentLifetime = 24 * time.Hour
	// DocumentLifetime applies to a document without headers for caches.
	DocumentLifetime = time.Hour
)

// DocumentError says why a client_id or its document cannot be used, for the developers of the client.
type DocumentError string

func (e DocumentError) Error() string { return string(e) }

// IsClientURL reports whether a client_id names a document, rather than an app with an id.
func IsClientURL(clientID string) bool { return strings.HasPrefix(clientID, "https://") }

// CheckClientURL returns a DocumentError if a client_id is not a URL at which a document may be. Only one notation of each URL is allowed,
// because client_ids are compared character by character.
func CheckClientURL(clientID string) error {
	u, err := url.Parse(clientID)
	switch {
	case err != nil || !IsClientURL(clientID) || len(clientID) > MaxClientURL || strings.ContainsFunc(clientID, outside) || strings.Contains(clientID, `\`):
		return DocumentError("client_id must be an https URL of at most 500 printable ASCII characters")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(clientID, "#"):
		return DocumentError("client_id must have no user, query or fragment")
	case u.Path == "" || slices.ContainsFunc(strings.Split(u.Path, "/"), isDotSegment):
		return DocumentError("client_id must have a path, without the segments . and ..")
	case u.Hostname() == "" || !plainHost(u) || u.Host != strings.ToLower(u.Host) || strings.HasSuffix(u.Hostname(), ".") || strings.HasSuffix(u.Host, ":"):
		return DocumentError("client_id must name its host in lower case, with letters, digits, dots and hyphens only")
	case NamesPlatform(u.Hostname()):
		return DocumentError("the host of client_id must not contain the name of the platform")
	}
	return nil
}

func isDotSegment(segment string) bool { return segment == "." || segment == ".." }

// ClientDocument is the content of a document. Other members are ignored.
type ClientDocument struct {
	ClientID      string          `json:"client_id"`
	ClientName    string          `json:"client_name"`
	RedirectURIs  []string        `json:"redirect_uris"`
	AuthMethod    string          `json:"token_endpoint_auth_method"`
	GrantTypes    []string        `json:"grant_types"`
	ResponseTypes []string        `json:"response_types"`
	Scope         string          `json:"scope"`
	Secret        json.RawMessage `json:"client_secret"`
	SecretExpires json.RawMessage `json:"client_secret_expires_at"`
}

// App returns the app that the document at the URL describes, or a DocumentError. A document is for all servers, so redirect URIs, grant
// types and scopes that are not allowed here are left out.
func (d ClientDocument) App(clientURL string, scopes []string) (App, error) {
	u, err := url.Parse(clientURL)
	if err != nil {
		return App{}, DocumentError("client_id is not a URL")
	}
	a := App{Published: true, Scopes: KnownScopes(d.Scope, scopes)}
	for _, uri := range d.RedirectURIs {
		if CanRegisterRedirect(uri) && !slices.Contains(a.RedirectURIs, uri) {
			a.RedirectURIs = append(a.RedirectURIs, uri)
		}
	}
	switch {
	case d.ClientID != clientURL:
		return App{}, DocumentError("client_id in the document is not the URL of the document")
	case d.Secret != nil || d.SecretExpires != nil:
		return App{}, DocumentError("the document must not have client_secret and client_secret_expires_at")
	case d.AuthMethod != "" && d.AuthMethod != "none":
		return App{}, DocumentError("token_endpoint_auth_method must be none: clients are public and use PKCE")
	case len(d.GrantTypes) > 0 && !slices.Contains(d.GrantTypes, "authorization_code"):
		return App{}, DocumentError("grant_types must have authorization_code")
	case len(d.ResponseTypes) > 0 && !slices.Contains(d.ResponseTypes, "code"):
		return App{}, DocumentError("response_types must have code")
	case len(d.RedirectURIs) > MaxRedirects || len(a.RedirectURIs) == 0:
		return App{}, DocumentError("redirect_uris must have 1 to 20 URIs, and at least one must be https, or http on 127.0.0.1, [::1] or localhost")
	case len(a.Scopes) == 0:
		return App{}, DocumentError("scope has none of the scopes in scopes_supported")
	}
	if a.Name, err = ShownName(d.ClientName, u.Hostname()); err != nil {
		return App{}, DocumentError("client_name must be one visible line of 1 to 60 characters, without the name of the platform")
	}
	return a, nil
}

// LifetimeOf limits the lifetime that a document's headers ask for.
func LifetimeOf(requested time.Duration) time.Duration {
	return min(max(requested, MinDocumentLifetime), MaxDocumentLifetime)
}

// StoredDocument is the app of a client_id that is a URL, as it was stored.
type StoredDocument struct {
	ID         AppID
	FreshUntil time.Time
	DeletedAt  *time.Time // when the platform deleted the app
}
