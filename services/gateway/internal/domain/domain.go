// Package domain defines the gateway's types: credential, principal, rate window, response. It is pure: no I/O, no clock.
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
	ErrQueryKey   = apperr.New(apperr.BadRequest, "query_api_key_unsupported", "An API key in the query is not supported. Send it as Authorization: Bearer <key>.")
	ErrTarget     = apperr.New(apperr.BadRequest, "malformed_request", "The request target is not a valid URI: it contains a raw #. Encode it as %23.")
	ErrMissing    = apperr.New(apperr.Unauthenticated, "missing_credential", "Send a credential as Authorization: Bearer <credential>.")
	ErrInvalid    = apperr.New(apperr.Unauthenticated, "invalid_credential", "The credential is not valid.")
	ErrExpired    = apperr.New(apperr.Unauthenticated, "expired_credential", "The access token has expired. Exchange the refresh token for a new one.")
	ErrRevoked    = apperr.New(apperr.Unauthenticated, "revoked_credential", "The credential has been revoked.")
	ErrScope      = apperr.New(apperr.Forbidden, "insufficient_scope", "The credential lacks a scope.")
	ErrSuspended  = apperr.New(apperr.Forbidden, "tenant_suspended", "The platform has suspended the tenant. Its operators can read the reason in the console.")
	ErrRate       = apperr.New(apperr.RateLimited, "rate_limited", "Too many requests. Wait for the time in Retry-After.")
	ErrTenantRate = apperr.New(apperr.RateLimited, "rate_limited", "All credentials of the tenant together have sent too many requests. Wait for the time in Retry-After.")
	ErrAppsRate   = apperr.New(apperr.RateLimited, "rate_limited", "The apps of the tenant together have sent too many requests. Wait for the time in Retry-After.")
	ErrStreams    = apperr.New(apperr.RateLimited, "rate_limited", "The credential has too many streams open.").WithRetryAfter(5 * time.Second)
	ErrBodies     = apperr.New(apperr.RateLimited, "rate_limited", "The credential is sending too many bytes at the same time. Send fewer requests in parallel.").WithRetryAfter(time.Second)
	ErrBusy       = apperr.ErrUnavailable.WithMessage("Too many bytes of request bodies are in progress. Retry shortly.")
	ErrGuessing   = apperr.New(apperr.RateLimited, "rate_limited", "Too many unknown credentials are being looked up. Wait for the time in Retry-After.").WithRetryAfter(time.Second)
	ErrOrigin     = apperr.New(apperr.Forbidden, "origin_not_allowed", "No app has registered the origin of this page. Register it as a browser origin of the app.")
	ErrAssistants = apperr.New(apperr.RateLimited, "rate_limited", "Assistants of this tenant have too many tool calls running.").WithRetryAfter(time.Second)
	ErrNoFeed     = apperr.New(apperr.NotFound, "calendar_feed_not_found", "Calendar feed not found.")
	ErrNoAccount  = apperr.New(apperr.NotFound, "not_found", "No payment gateway account has this path.")
	ErrTokens     = apperr.New(apperr.RateLimited, "rate_limited", "Too many unknown addresses are being looked up. Wait for the time in Retry-After.").WithRetryAfter(time.Second)
	ErrNotFound   = apperr.New(apperr.NotFound, "not_found", "This path does not exist. See /docs for all paths. No path ends with a slash.")
)

// The reasons why the gateway ends a stream.
var (
	ErrStopping = errors.New("the gateway is stopping")
	ErrEnded    = errors.New("the credential has ended") // wraps the error of a request with the credential
)

// Principal is the identity and the rights of a credential.
type Principal struct {
	Caller  caller.Caller  // without a request id
	Encoded caller.Encoded // Caller in the form used in signed calls
	Scopes  string         // the granted scopes, space-separated
	Version int64          // incremented by each change of the credential or its tenant
	Expires time.Time      // end of an access token or API key; zero for a key that does not expire
	Origins []string       // of the pages whose scripts may use an access token
	Revoked bool
	Limits  OwnLimits // of the tenant

	ExpirySet bool // Expires was set for an API key; otherwise a rotation ends the key

	Suspended bool      // the tenant is suspended, or its data is being erased
	Closing   bool      // the tenant is closing: its data can only be read
	EraseAt   time.Time // when the data of a closing tenant is erased
}

// Allows returns ErrScope with the first scope of needed that p does not have.
func (p *Principal) Allows(needed []string) error {
	for _, scope := range needed {
		if !p.Caller.Has(scope) {
			return ErrScope.WithMessage("The credential lacks the scope %s.", scope).WithHeader("WWW-Authenticate",
				`Bearer realm="holdfast", error="insufficient_scope", scope="`+strings.Join(needed, " ")+`"`)
		}
	}
	return nil
}

// Active returns ErrSuspended if the tenant of the credential is suspended, or if it is closing and the request writes.
func (p *Principal) Active(writes bool) error {
	switch {
	case p.Suspended:
		return ErrSuspended
	case p.Closing && writes:
		return ErrSuspended.WithMessage("The account is closing and accepts no changes. Its data can be read and exported until %s.", p.EraseAt.UTC().Format(time.RFC3339))
	}
	return nil
}

// Bearer returns the credential in the values of the Authorization header and checks its form, without a lookup.
func Bearer(values []string) (string, error) {
	if len(values) == 0 {
		return "", ErrMissing
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", ErrMissing
	}
	if len(values) > 1 || KindOf(token) == "" {
		return "", ErrInvalid
	}
	return token, nil
}

// The kinds of credentials, as identity names them.
const (
	KindKey   = "api_key"
	KindOAuth = "oauth"
)

// KindOf returns the kind of a credential with a valid form and checksum, and "" for anything else.
func KindOf(token string) string {
	if _, ok := apikey.Valid(token); ok {
		return KindKey
	}
	if apikey.Has(token, apikey.AccessToken, apikey.KeyDigits) {
		return KindOAuth
	}
	return ""
}

// HasQueryKey reports whether a raw query contains a parameter api_key, escaped or not.
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

// Network returns the unit for rate limits of client addresses: an IPv4 address, or the /64 of an IPv6 address, because one client
// usually controls all of it.
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
