package domain

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/quota"
	"holdfast.dev/proto"
)

type appPrefix struct{}

func (appPrefix) Prefix() string { return "app" }

// AppID is the public id of an OAuth app: its client_id.
type AppID = ids.ID[appPrefix]

// NewAppID creates a new id.
func NewAppID() AppID { return ids.New[appPrefix]() }

// ParseAppID parses a client_id. It returns ErrAppNotFound for anything else.
func ParseAppID(s string) (AppID, error) {
	id, err := ids.Parse[appPrefix](s)
	if err != nil {
		return AppID{}, ErrAppNotFound
	}
	return id, nil
}

// CommandLineID is the client_id of the command line holdfast. It is the same on each platform, so that people need not configure it.
const CommandLineID = "app_00000000000000000000000c11"

// CommandLineRedirect is its redirect URI. On a loopback address, an app can listen on any port (RFC 8252, section 7.3).
const CommandLineRedirect = "http://127.0.0.1/callback"

// ErrCommandLineDeleted reports that a deleted app cannot be registered again: its old grants would work again.
var ErrCommandLineDeleted = errors.New("the app was deleted, and cannot be registered again. Register another app with `app create --published " +
	"--redirect-uri " + CommandLineRedirect + "`, and log in with `holdfast login --client-id`")

// ErrAppNotFound reports that an app does not exist or was deleted.
var ErrAppNotFound = apperr.New(apperr.NotFound, "app_not_found", "App not found.")

// AppPlaces is the maximum number of apps of a tenant. The platform can set another number for a tenant.
var AppPlaces = quota.Cap{Name: proto.CapApps.Name, Most: proto.CapApps.Default, Rows: "OAuth apps", Field: "name", Remedy: "Delete one first."}

const (
	// MaxReuseLeeway is the maximum time in which an app can reuse its previous refresh token, in seconds.
	MaxReuseLeeway = 10
	// MaxRedirects is the maximum number of redirect URIs of an app.
	MaxRedirects = 20
	maxRedirect  = 2000
	maxOrigins   = 20
	maxOrigin    = 255
)

// App is a third-party app that acts for operators: a public client of OAuth 2.1, which has no secret.
type App struct {
	TenantID           ids.Tenant // tenant whose operators created it
	ID                 AppID
	Name               string
	RedirectURIs       []string
	Scopes             []string // scopes that it may request
	Published          bool     // operators of every tenant can use it
	ReuseLeewaySeconds int
	BrowserOrigins     []string   // origins of pages whose scripts may use its tokens
	VerifiedAt         *time.Time // when the platform verified it; nil: its name and its publisher are not verified
	Version            int64
	CreatedAt          time.Time
	UpdatedAt          time.Time
	DeletedAt          *time.Time
}

// Leeway returns how long the previous refresh token can be reused.
func (a App) Leeway() time.Duration { return time.Duration(a.ReuseLeewaySeconds) * time.Second }

// Serves reports whether the app may act for the tenant.
func (a App) Serves(tenant ids.Tenant) bool { return a.Published || a.TenantID == tenant }

// CheckApp returns a 422 with all invalid fields of an app.
func CheckApp(a App) error {
	var verdicts []error
	require := func(ok bool, field, message string) {
		if !ok {
			verdicts = append(verdicts, apperr.Field(field, "%s", message))
		}
	}
	require(len(a.RedirectURIs) > 0 && len(a.RedirectURIs) <= MaxRedirects, "redirect_uri", "There must be 1 to 20 redirect URIs.")
	for _, uri := range a.RedirectURIs {
		verdicts = append(verdicts, CheckRedirectURI(uri))
	}
	require(len(a.BrowserOrigins) <= maxOrigins, "browser_origin", "There can be at most 20 browser origins.")
	for _, origin := range a.BrowserOrigins {
		verdicts = append(verdicts, CheckBrowserOrigin(origin))
	}
	require(len(a.Scopes) > 0, "scopes", "There must be at least one scope.")
	require(a.ReuseLeewaySeconds >= 0 && a.ReuseLeewaySeconds <= MaxReuseLeeway, "reuse_leeway", "Must be 0 to 10 seconds.")
	return apperr.Join(verdicts...)
}

// Edited returns the changed app. A new name or redirect URI ends its verification.
func (a App) Edited(old App) App {
	if a.Name != old.Name || !slices.Equal(a.RedirectURIs, old.RedirectURIs) {
		a.VerifiedAt = nil
	}
	return a
}

// responseParams are the parameters that the response adds to a redirect URI, each once.
var responseParams = []string{"code", "state", "iss", "error", "error_description", "error_uri"}

// CheckRedirectURI returns a 422 if an app may not register the redirect URI: OAuth 2.1, sections 2.3 and 8.4. Allowed are https,
// http on a loopback address, and a private-use scheme whose name contains a dot (RFC 8252, section 7.1).
func CheckRedirectURI(s string) error {
	bad := func(why string) error { return apperr.Field("redirect_uri", "%q %s", shown(s), why) }
	u, err := url.Parse(s)
	switch {
	case err != nil || !u.IsAbs() || len(s) > maxRedirect || strings.ContainsFunc(s, outside):
		return bad("is not an absolute URI of at most 2000 printable ASCII characters.")
	case u.Fragment != "" || strings.Contains(s, "#"):
		return bad("must have no fragment.")
	case u.User != nil:
		return bad("must name no user.")
	case slices.ContainsFunc(responseParams, u.Query().Has):
		return bad("must not have the parameters of a response: code, state, iss, error, error_description or error_uri.")
	case u.Host != "" && !plainHost(u):
		return bad("must name its host with letters, digits, dots and hyphens only.")
	case u.Scheme == "https":
		if name := u.Hostname(); name == "" || name != strings.ToLower(name) || strings.HasSuffix(name, ".") || strings.Contains(name, "*") {
			return bad("must name its host in lower case, without a wildcard or a dot at the end.")
		}
	case u.Scheme == "http":
		if !loopback(u) {
			return bad("must be https, but for http://127.0.0.1 and http://[::1].")
		}
	case !strings.Contains(u.Scheme, "."):
		return bad("must be https, http on a loopback address, or a private-use scheme with a dot, such as com.example.app:/callback.")
	}
	return nil
}

// CheckBrowserOrigin returns a 422 if an app may not register the origin. It must have the form that browsers send (RFC 6454,
// section 6.2): https, or http on this machine, a host in lower case, and the port unless it is the scheme's default.
func CheckBrowserOrigin(s string) error {
	bad := func(why string) error { return apperr.Field("browser_origin", "%q %s", shown(s), why) }
	u, err := url.Parse(s)
	switch {
	case err != nil || len(s) > maxOrigin || strings.ContainsFunc(s, outside) || u.Hostname() == "" || s != u.Scheme+"://"+u.Host || s != strings.ToLower(s):
		return bad("is no origin such as https://app.example, without a path and a slash at its end.")
	case u.User != nil || strings.HasSuffix(u.Hostname(), ".") || strings.Contains(s, "*") || strings.HasSuffix(u.Host, ":"):
		return bad("must name one host, without a user, a wildcard or a dot at the end.")
	case !plainHost(u):
		return bad("must name its host with letters, digits, dots and hyphens only.")
	case u.Scheme != "https" && !local(u):
		return bad("must be https, but for http on localhost, 127.0.0.1 and [::1].")
	case u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80":
		return bad("must not name the port that its scheme has anyhow: browsers do not send it.")
	}
	return nil
}

// plainHost reports whether the host of u consists of characters that have no other meaning in a content security policy or a header,
// where it is written: those of a domain name or an IP address, and the port.
func plainHost(u *url.URL) bool { return strings.Trim(strings.ToLower(u.Host), hostDigits) == "" }

const hostDigits = "abcdefghijklmnopqrstuvwxyz0123456789-._:[]"

func shown(s string) string { return s[:min(len(s), 100)] }

func outside(r rune) bool { return r <= ' ' || r > '~' }

// loopback reports whether u is http on a loopback address. The name localhost does not count, because it can resolve to another
// address (RFC 8252, section 8.3).
func loopback(u *url.URL) bool {
	return u.Scheme == "http" && (u.Hostname() == "127.0.0.1" || u.Hostname() == "::1")
}

// local reports whether u is http on this machine, by address or by the name localhost, which apps that registered themselves can have.
func local(u *url.URL) bool { return loopback(u) || u.Scheme == "http" && u.Hostname() == "localhost" }

// LocalURL reports whether a URL is http on this machine, for example a redirect URI on the operator's computer.
func LocalURL(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && local(u)
}

// Redirects reports whether requested is one of the app's redirect URIs, compared character by character. On a loopback address, and on
// a registered localhost, any port is allowed (OAuth 2.1, section 2.3.1).
func (a App) Redirects(requested string) bool {
	if slices.Contains(a.RedirectURIs, requested) {
		return true
	}
	u, err := url.Parse(requested)
	if err != nil || !local(u) || u.User != nil || strings.Contains(requested, "#") || strings.ContainsFunc(requested, outside) {
		return false
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	host := strings.TrimSuffix(u.Host, ":"+u.Port())
	if err != nil || requested != "http://"+host+":"+strconv.FormatUint(port, 10)+after(requested) {
		return false // another notation of the same address is not the same string
	}
	for _, own := range a.RedirectURIs {
		if o, err := url.Parse(own); err == nil && local(o) && o.Hostname() == u.Hostname() && after(own) == after(requested) {
			return true
		}
	}
	return false
}

// after returns the part of a URI after the authority.
func after(uri string) string {
	_, rest, _ := strings.Cut(uri, "://")
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		return rest[i:]
	}
	return ""
}

// PublishedApp is an app, with the name of the tenant that publishes it, or the URL of the document that describes it.
type PublishedApp struct {
	App

	Publisher       string       // "" for an app that registered itself
	PublisherStatus TenantStatus // "" for an app that registered itself
	DocumentURL     string       // the client_id of an app that a document describes; "" for any other app
}

// ClientID returns the client_id by which the app is known to its users: the URL of its document, or its id.
func (a PublishedApp) ClientID() string { return cmp.Or(a.DocumentURL, a.ID.String()) }

// Offered reports whether operators can be asked for consent: an app ends with the suspension and the closing of its publisher.
func (a PublishedApp) Offered() bool {
	return a.PublisherStatus == "" || a.PublisherStatus == TenantActive
}

// Trusted reports whether the app needs no warning for an operator with the memberships: the platform has verified it, or it can act
// only for its own tenant. A membership elsewhere counts, because a tenant can add operators without their consent.
func (a App) Trusted(members []MemberTenant) bool {
	if a.VerifiedAt != nil {
		return true
	}
	served := 0
	for _, m := range members {
		if !a.Serves(m.TenantID) {
			continue
		}
		if m.TenantID != a.TenantID {
			return false
		}
		served++
	}
	return served > 0
}
