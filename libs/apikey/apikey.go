// Package apikey makes and checks the secrets that the platform issues: a prefix, random base62 digits, and 6 base62 digits
// of the CRC32 (IEEE) of everything before them. The checksum finds a mistyped secret without a lookup. It is not a secret.
//
//	svc_live_, svc_test_  an API key: 26 random digits
//	svc_at_               an OAuth access token: 26 random digits
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"

	"holdfast.dev/libs/caller"
)

// AccessToken is the prefix of OAuth access tokens. KeyDigits is the number of random digits in access tokens and API keys: 154
// bits.
const (
	AccessToken = "svc_at_"
	KeyDigits   = 26
)

const (
	alphabet   = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	base       = uint32(len(alphabet))
	livePrefix = "svc_live_"
	testPrefix = "svc_test_"
	checkLen   = 6
)

// New creates a new API key of the mode. The key is shown once and stored as its Hash.
func New(mode caller.Mode) string {
	if mode == caller.Live {
		return Secret(livePrefix, KeyDigits)
	}
	return Secret(testPrefix, KeyDigits)
}

// Secret creates a new secret with the given prefix and number of random digits.
func Secret(prefix string, digits int) string { return Sum(prefix + Random(digits)) }

// Random returns random base62 digits.
func Random(digits int) string {
	out := make([]byte, 0, digits)
	var buf [64]byte
	for len(out) < digits {
		_, _ = rand.Read(buf[:]) // never fails since Go 1.24
		for _, b := range buf {
			// 248 is the largest multiple of 62 that fits into a byte. Larger bytes are skipped, because they would bias
			// the digits.
			if b < 248 && len(out) < digits {
				out = append(out, alphabet[uint32(b)%base])
			}
		}
	}
	return string(out)
}

// Sum appends the checksum of s to it.
func Sum(s string) string {
	sum := checksum(s)
	return s + string(sum[:])
}

// Valid reports whether s has the form of an API key, with a correct checksum, and returns the key's mode.
func Valid(s string) (caller.Mode, bool) {
	switch {
	case Has(s, livePrefix, KeyDigits):
		return caller.Live, true
	case Has(s, testPrefix, KeyDigits):
		return caller.Test, true
	}
	return "", false
}

// Has reports whether s consists of prefix, the given number of digits and their checksum.
func Has(s, prefix string, digits int) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok || len(rest) != digits+checkLen {
		return false
	}
	for i := range len(rest) {
		if !isDigit(rest[i]) {
			return false
		}
	}
	want := checksum(s[:len(s)-checkLen])
	return s[len(s)-checkLen:] == string(want[:])
}

// Hash returns the SHA-256 of the whole secret, the only form in which it is stored or sent between services.
func Hash(s string) [32]byte { return sha256.Sum256([]byte(s)) }

func isDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// checksum returns the CRC32 in base62, most significant digit first, padded with zeros.
func checksum(s string) [checkLen]byte {
	n := crc32.ChecksumIEEE([]byte(s))
	var out [checkLen]byte
	for i := checkLen - 1; i >= 0; i-- {
		out[i] = alphabet[n%base]
		n /= base
	}
	return out
}
