package domain

import (
	"maps"
	"slices"
	"strings"

	"holdfast.dev/libs/apperr"
)

// EndpointHeaders are the headers that an endpoint's operator has set, as plain text by name. The contract limits their number, names and
// values. Each request to the endpoint contains them in addition to the platform's headers, and never instead of these.
type EndpointHeaders map[string]string

// The headers that an operator cannot set, in lower case: those of the platform, and those that control the connection.
var (
	refusedHeaders = []string{
		"host", "user-agent", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect",
	}
	refusedHeaderPrefixes = []string{"content-", "service-", "webhook-", "proxy-"}
)

// Names returns the names of the headers, sorted.
func (h EndpointHeaders) Names() []string { return slices.Sorted(maps.Keys(h)) }

// Check returns an error on headers.<name> for each header that cannot be set, or that is given twice in different case.
func (h EndpointHeaders) Check() error {
	var refused []error
	seen := map[string]bool{}
	for _, name := range h.Names() {
		lower := strings.ToLower(name)
		switch {
		case slices.Contains(refusedHeaders, lower), hasAnyPrefix(lower, refusedHeaderPrefixes):
			refused = append(refused, apperr.Field("headers."+name, "The platform sets this header. Use another name."))
		case seen[lower]:
			refused = append(refused, apperr.Field("headers."+name, "Another header has this name in different case. Send only one of them."))
		}
		seen[lower] = true
	}
	return apperr.Join(refused...)
}

func hasAnyPrefix(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
