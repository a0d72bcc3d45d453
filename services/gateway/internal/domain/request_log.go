package domain

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"holdfast.dev/libs/caller"
)

// RequestLog is an entry of the request log. The contract describes the fields; an empty text is null. It contains neither a body
// nor the value of a query parameter.
type RequestLog struct {
	ID             string
	Caller         *caller.Caller
	Status         int
	Method         string
	Route          string // in the contract
	Path           string // escaped, relative to the base
	Query          string // raw; only its names are logged
	Code           string
	Param          string
	Created        string // id of the object that the request created, or ""
	Duration       time.Duration
	Address        string // of the client; only its network is logged
	UserAgent      string
	IdempotencyKey string // only its hash is logged
	Replayed       bool
}

// Bounds of the texts of an entry that a client can choose.
const (
	maxQueryNames = 20
	maxQueryName  = 64  // bytes
	maxUserAgent  = 200 // characters, like the next one
	maxParam      = 100
)

// LoggedPath returns a path for the log, and the id of the object that it is about. A value that does not have the form of an id,
// such as an email address, is replaced with its name in the route. The object is the value of {id}.
func LoggedPath(route, path string) (logged, object string) {
	plain := true
	for r, p := route, path; r != "" && p != ""; {
		var name, value string
		name, r, _ = strings.Cut(r[1:], "/")
		value, p, _ = strings.Cut(p[1:], "/")
		if strings.HasPrefix(name, "{") {
			switch known := isID(value); {
			case !known:
				plain = false
			case name == "{id}":
				object = value
			}
		}
		r, p = slash(r), slash(p)
	}
	if plain {
		return path, object
	}
	values := strings.Split(path, "/")
	for i, name := range strings.Split(route, "/") {
		if i < len(values) && strings.HasPrefix(name, "{") && !isID(values[i]) {
			values[i] = name
		}
	}
	return strings.Join(values, "/"), object
}

// slash returns the rest of a path with the slash that strings.Cut removed.
func slash(rest string) string {
	if rest == "" {
		return ""
	}
	return "/" + rest
}

// isID reports whether s has the form of an id of the API: a prefix and 26 digits of base32, or an id of the payment gateway.
func isID(s string) bool {
	prefix, rest, _ := strings.Cut(s, "_")
	if len(prefix) < 2 || len(prefix) > 4 || strings.TrimLeft(prefix, lower) != "" {
		return false
	}
	if prefix == "pi" {
		return len(rest) >= 14 && len(rest) <= 64 && strings.TrimLeft(rest, lower+upper+digits) == ""
	}
	return len(rest) == 26 && strings.TrimLeft(rest, lower+digits) == ""
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

// QueryNames appends the names in a raw query to names, each once and without values. It leaves out names that are too long or have
// other characters than those of a parameter.
func QueryNames(names []string, raw string) []string {
	for pair := range strings.SplitSeq(raw, "&") {
		if len(names) == maxQueryNames {
			return names
		}
		name, _, _ := strings.Cut(pair, "=")
		if strings.ContainsAny(name, "%+") {
			var err error
			if name, err = url.QueryUnescape(name); err != nil {
				continue
			}
		}
		if name != "" && len(name) <= maxQueryName && strings.TrimLeft(name, lower+upper+digits+"_.-[]") == "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ClientNetwork returns the network of a client for the log: the /24 of an IPv4 address, or the /48 of an IPv6 address. It is "" if
// the address is not known.
func ClientNetwork(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	bits := 48
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		bits = 24
	}
	return netip.PrefixFrom(ip, bits).Masked().String()
}

// LoggedUserAgent returns the first characters of a User-Agent header.
func LoggedUserAgent(s string) string { return bounded(s, maxUserAgent) }

// LoggedParam returns the first characters of the name of a field, which a client can have chosen.
func LoggedParam(s string) string { return bounded(s, maxParam) }

// bounded returns the first characters of s, without control characters and invalid UTF-8.
func bounded(s string, most int) string {
	if len(s) > most*utf8.UTFMax {
		s = s[:most*utf8.UTFMax]
	}
	if strings.IndexFunc(s, unprintable) >= 0 {
		s = strings.Map(func(r rune) rune {
			if unprintable(r) {
				return -1
			}
			return r
		}, s)
	}
	if len(s) <= most {
		return s
	}
	n := 0
	for i := range s {
		if n == most {
			return s[:i]
		}
		n++
	}
	return s
}

func unprintable(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }

// SDKVersion returns the name and version of an SDK or the command line, such as holdfast-go/1.0.0, which begins their User-Agent.
// It is "" for any other client.
func SDKVersion(userAgent string) string {
	if !strings.HasPrefix(userAgent, "holdfast") {
		return ""
	}
	product, _, _ := strings.Cut(userAgent, " ")
	if name, version, _ := strings.Cut(product, "/"); len(product) <= maxQueryName && version != "" && strings.TrimLeft(name, lower+"-") == "" {
		return product
	}
	return ""
}
