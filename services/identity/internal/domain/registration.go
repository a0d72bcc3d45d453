package domain

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The bounds of apps that register themselves: RFC 7591.
const (
	// NetworkPlaces is the maximum number of unused registrations of one network. One more replaces the oldest.
	NetworkPlaces = 20
	// RegisteredPlaces is the maximum number of unused registrations. One more replaces the oldest.
	RegisteredPlaces = 10_000
	// UnusedLifetime is how long a registration without a consent is kept, and one whose grants were deleted after its last consent.
	UnusedLifetime = time.Hour
)

// ErrSelfRegistered reports that an app that registered itself cannot be changed: its publisher expects the settings that it sent.
var ErrSelfRegistered = errors.New("the app registered itself, so it cannot be changed. You can delete it")

// SelfRegistered reports whether the app has registered itself. Nobody has verified its name.
func (a App) SelfRegistered() bool { return a.TenantID.IsZero() }

// RegisteredApp is an app that has registered itself, in a list.
type RegisteredApp struct {
	App

	UsedAt      *time.Time // the last consent; nil if there was none
	DocumentURL string     // the client_id of an app that a document describes; "" for one that registered itself
}

// CanRegisterRedirect reports whether an app that registers itself can have the redirect URI: https, or http on this machine. A
// private-use scheme is not allowed, because any program can claim one. The name localhost is, because the Model Context Protocol
// names it and clients use it.
func CanRegisterRedirect(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return false
	}
	if u.Scheme == "http" && u.Hostname() == "localhost" {
		s = strings.Replace(s, "://localhost", "://127.0.0.1", 1)
	}
	return CheckRedirectURI(s) == nil
}

// ShownName returns the name under which an app that nobody has verified is shown. It is the host instead if the app sent none, or one
// with the name of the platform: clients add the name that their user gave the server, such as "Claude Code (holdfast)", and a refusal would
// lock them out. The error says that the name is not allowed.
func ShownName(sent, host string) (string, error) {
	name := strings.TrimSpace(sent)
	if name == "" || NamesPlatform(name) {
		name = host[max(0, len(host)-MaxAppName):] // the end of a long name says whose it is
	}
	return name, CheckAppName(name)
}

// FirstHost returns the host of the first of several redirect URIs.
func FirstHost(redirects []string) string {
	for _, uri := range redirects {
		if u, err := url.Parse(uri); err == nil {
			return u.Hostname()
		}
	}
	return ""
}

// KnownScopes returns the scopes of a space-separated list that are in all, in the order of all. An empty list means all.
func KnownScopes(list string, all []string) []string {
	requested := strings.Fields(list)
	if len(requested) == 0 {
		return slices.Clone(all)
	}
	return Intersect(all, requested)
}
