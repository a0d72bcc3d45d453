package domain

import (
	"strconv"
	"strings"
)

// Content codings (RFC 9110, section 8.4.1) in which responses are sent.
const (
	Gzip = "gzip"
	Zstd = "zstd"
)

// MinCompressed is the size in bytes above which a response is compressed. Smaller ones fit in one packet anyway.
const MinCompressed = 1024 + 1

// Negotiate returns the content coding for an Accept-Encoding, or "" for none. Of codings with the same quality, it prefers zstd, then
// gzip.
func Negotiate(accepted []string) string {
	const unset = -1.0
	zstd, gzip, identity, others := unset, unset, unset, 0.0
	for _, line := range accepted {
		for part := range strings.SplitSeq(line, ",") {
			name, parameters, _ := strings.Cut(part, ";")
			q := weight(parameters)
			switch name = strings.TrimSpace(name); {
			case strings.EqualFold(name, Zstd):
				zstd = q
			case strings.EqualFold(name, Gzip), strings.EqualFold(name, "x-gzip"):
				gzip = q
			case strings.EqualFold(name, "identity"):
				identity = q
			case name == "*":
				others = q
			}
		}
	}
	if zstd == unset {
		zstd = others
	}
	if gzip == unset {
		gzip = others
	}
	switch {
	case zstd > 0 && zstd >= gzip && zstd >= identity:
		return Zstd
	case gzip > 0 && gzip >= identity:
		return Gzip
	default:
		return ""
	}
}

// weight returns the weight in the parameters of a coding: 1 without one, and 0 for a malformed one.
func weight(parameters string) float64 {
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil || !(q >= 0 && q <= 1) {
				return 0
			}
			return q
		}
	}
	return 1
}

// Compressible reports whether a media type is text. Documents and images are compressed already.
func Compressible(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	switch kind = strings.TrimSpace(kind); kind {
	case "application/json", "application/yaml", "application/javascript":
		return true
	default:
		return strings.HasPrefix(kind, "text/") && kind != "text/event-stream"
	}
}

// CodedETag returns the entity tag of a document in a content coding. A strong tag gets the name of the coding as a suffix, because
// it identifies the bytes. A weak one stays the same.
func CodedETag(etag, coding string) string {
	if len(etag) < 2 || etag[0] != '"' {
		return etag
	}
	return etag[:len(etag)-1] + "-" + coding + `"`
}
