// Package domain holds the gateway's nouns: credential, principal, rate window, answer. Pure: no I/O, no clock.
package domain

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
)

// Errors of the gateway's own checks.
var (
	ErrQueryKey = apperr.New(apperr.BadRequest, "query_api_key_unsupported", "An API key in the query is not supported. Send it as Authorization: Bearer <key>.")
	ErrTarget   = apperr.New(apperr.BadRequest, "malformed_request", "The target of the request is no URI: it holds a raw #. Escape it as %23.")
	ErrMissing  = apperr.New(apperr.Unauthenticated, "missing_credential", "Send a credential as Authorization: Bearer <credential>.")
	ErrInvalid  = apperr.New(apperr.Unauthenticated, "invalid_credential", "The credential is not valid.")
	ErrRevoked  = apperr.New(apperr.Unauthenticated, "revoked_credential", "The credential has been revoked.")
	ErrScope    = apperr.New(apperr.Forbidden, "insufficient_scope", "The credential lacks a scope.")
	ErrRate     = apperr.New(apperr.RateLimited, "rate_limited", "Too many requests. Wait for the time in Retry-After.")
	ErrStreams  = apperr.New(apperr.RateLimited, "rate_limited", "The credential has too many streams open.").WithRetryAfter(5 * time.Second)
	ErrBodies   = apperr.New(apperr.RateLimited, "rate_limited", "The credential has too many bytes of bodies under way. Send fewer at a time.").WithRetryAfter(time.Second)
	ErrBusy     = apperr.ErrUnavailable.WithMessage("Too many bytes of bodies are under way. Retry shortly.")
	ErrGuessing = apperr.New(apperr.RateLimited, "rate_limited", "Too many unknown credentials are being looked up. Wait for the time in Retry-After.").WithRetryAfter(time.Second)
	ErrNotFound = apperr.New(apperr.NotFound, "not_found", "There is nothing at this path. All paths are listed at /docs; none ends in a slash.")
)

// ErrStopping is why a stream ends when the gateway stops.
var ErrStopping = errors.New("the gateway is stopping")

// Principal is what a credential stands for.
type Principal struct {
	Caller  caller.Caller  // without a request id
	Encoded caller.Encoded // Caller, as its calls to services state it
	Scopes  string         // the granted scopes, space-separated
	Version int64          // raised by each change of the credential or its tenant
	Revoked bool
}

// Allows returns ErrScope, naming the first scope of needed that p was not granted.
func (p *Principal) Allows(needed []string) error {
	for _, scope := range needed {
		if !p.Caller.Has(scope) {
			return ErrScope.WithMessage("The credential lacks the scope %s.", scope).WithHeader("WWW-Authenticate",
				`Bearer realm="holdfast", error="insufficient_scope", scope="`+strings.Join(needed, " ")+`"`)
		}
	}
	return nil
}

// Bearer takes the credential out of the values of the Authorization header and checks its form, which
// costs no look-up.
func Bearer(values []string) (string, error) {
	if len(values) == 0 {
		return "", ErrMissing
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", ErrMissing
	}
	if _, ok := apikey.Valid(token); !ok || len(values) > 1 {
		return "", ErrInvalid
	}
	return token, nil
}

// HasQueryKey reports whether a raw query names api_key, however it is escaped.
func HasQueryKey(raw string) bool {
	for pair := range strings.SplitSeq(raw, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if strings.Contains(name, "%") {
			if plain, err := url.QueryUnescape(name); err == nil {
				name = plain
			}
		}
		if name == "api_key" {
			return true
		}
	}
	return false
}

// Network is what a client's address counts as: itself, or of IPv6 its /64, all of which one client has.
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}
