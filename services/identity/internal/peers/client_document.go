package peers

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/libs/egress"

	"holdfast.dev/services/identity/internal/domain"
)

// ClientDocuments fetches client ID metadata documents from URLs that strangers have named. It connects only where the guard allows it,
// follows no redirects, uses no proxy, and sends nothing but the URL.
type ClientDocuments struct{ transport *http.Transport }

// NewClientDocuments returns the client. resolver finds the addresses of names. roots are the trusted authorities; nil: those of the system.
func NewClientDocuments(guard *egress.Guard, resolver *net.Resolver, roots *x509.CertPool) *ClientDocuments {
	transport := guard.Transport(resolver)
	transport.DisableKeepAlives, transport.TLSClientConfig.RootCAs = true, roots
	return &ClientDocuments{transport: transport}
}

// Fetch returns the document at a URL, and how long its headers allow to use it, at most until ctx ends. An error that the site causes is a
// domain.DocumentError. It contains no addresses, and the same text for each reason why there is no connection.
func (c *ClientDocuments) Fetch(ctx context.Context, url string) (d domain.ClientDocument, lifetime time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return d, 0, domain.DocumentError("client_id is not a URL")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "Holdfast")
	res, err := c.transport.RoundTrip(req) // an http.Client would follow redirects
	if err != nil {
		return d, 0, unreachable(ctx)
	}
	defer func() { _ = res.Body.Close() }()
	switch kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); {
	case res.StatusCode/100 == 3:
		return d, 0, domain.DocumentError("the site of client_id redirects, which is not allowed")
	case res.StatusCode != http.StatusOK:
		return d, 0, domain.DocumentError(fmt.Sprintf("the site of client_id returned the status %d instead of a document", res.StatusCode))
	case kind != "application/json" && (!strings.HasPrefix(kind, "application/") || !strings.HasSuffix(kind, "+json")):
		return d, 0, domain.DocumentError("the document must have the content type application/json")
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, domain.MaxClientDocument+1))
	switch {
	case err != nil:
		return d, 0, unreachable(ctx)
	case len(raw) > domain.MaxClientDocument:
		return d, 0, domain.DocumentError("the document is larger than 16 KiB")
	case json.Unmarshal(raw, &d) != nil:
		return domain.ClientDocument{}, 0, domain.DocumentError("the document is not a JSON object with the members of RFC 7591, section 2")
	}
	return d, lifetimeOf(res.Header), nil
}

func unreachable(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return domain.DocumentError("the site of client_id did not send the document within 5 seconds")
	}
	return domain.DocumentError("the site of client_id cannot be reached at a public address, with a valid certificate")
}

// lifetimeOf returns how long a response is fresh in a shared cache: RFC 9111, section 4.2.1. It is zero if the response must not be stored,
// and domain.DocumentLifetime without instructions.
func lifetimeOf(h http.Header) time.Duration {
	age, shared := time.Duration(-1), time.Duration(-1)
	for _, directive := range strings.Split(strings.ToLower(strings.Join(h.Values("Cache-Control"), ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch seconds, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 32); {
		case name == "no-store" || name == "no-cache" || name == "private":
			return 0
		case name == "max-age" && err == nil:
			age = time.Duration(max(0, seconds)) * time.Second
		case name == "s-maxage" && err == nil:
			shared = time.Duration(max(0, seconds)) * time.Second
		case (name == "max-age" || name == "s-maxage") && !errors.Is(err, strconv.ErrRange):
			return 0 // no number
		case name == "max-age" || name == "s-maxage":
			age = domain.MaxDocumentLifetime // too large for a number
		}
	}
	if shared >= 0 {
		age = shared
	}
	if age < 0 {
		return expiresIn(h)
	}
	spent, _ := strconv.ParseInt(h.Get("Age"), 10, 32)
	return age - time.Duration(max(0, spent))*time.Second
}

// expiresIn returns the time from the header Date until Expires.
func expiresIn(h http.Header) time.Duration {
	if h.Get("Expires") == "" {
		return domain.DocumentLifetime
	}
	until, err := http.ParseTime(h.Get("Expires"))
	if err != nil {
		return 0
	}
	from, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return until.Sub(from)
}
