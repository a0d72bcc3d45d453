// Package apikey makes and checks API keys: svc_live_ or svc_test_, 26 random base62 digits, and 6 base62 digits of the
// CRC32 (IEEE) of everything before them. The checksum finds a mistyped key without a look-up. It is not a secret.
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"

	"holdfast.dev/libs/caller"
)

const (
	alphabet   = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	base       = uint32(len(alphabet))
	livePrefix = "svc_live_"
	testPrefix = "svc_test_"
	randomLen  = 26
	checkLen   = 6
)

// New makes a new key of the mode, with 154 random bits. The key is shown once and stored as its Hash.
func New(mode caller.Mode) string {
	prefix := testPrefix
	if mode == caller.Live {
		prefix = livePrefix
	}
	key := make([]byte, 0, len(prefix)+randomLen+checkLen)
	key = append(key, prefix...)
	var buf [64]byte
	for len(key) < len(prefix)+randomLen {
		_, _ = rand.Read(buf[:]) // never fails since Go 1.24
		for _, b := range buf {
			// 248 is the largest multiple of 62 that fits into a byte. Larger bytes are skipped, because they would bias
			// the digits.
			if b < 248 && len(key) < len(prefix)+randomLen {
				key = append(key, alphabet[uint32(b)%base])
			}
		}
	}
	sum := checksum(string(key))
	return string(append(key, sum[:]...))
}

// Valid reports whether s has the form of a key, with a correct checksum, and returns the key's mode.
func Valid(s string) (caller.Mode, bool) {
	mode := caller.Live
	digits, ok := strings.CutPrefix(s, livePrefix)
	if !ok {
		mode = caller.Test
		digits, ok = strings.CutPrefix(s, testPrefix)
	}
	if !ok || len(digits) != randomLen+checkLen {
		return "", false
	}
	for i := range len(digits) {
		if !isDigit(digits[i]) {
			return "", false
		}
	}
	want := checksum(s[:len(s)-checkLen])
	if s[len(s)-checkLen:] != string(want[:]) {
		return "", false
	}
	return mode, true
}

// Hash is SHA-256 of the whole key: the only form in which a key is stored or sent between services.
func Hash(s string) [32]byte { return sha256.Sum256([]byte(s)) }

func isDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// checksum is the CRC32 in base62, most significant digit first, padded with zeros.
func checksum(s string) [checkLen]byte {
	n := crc32.ChecksumIEEE([]byte(s))
	var out [checkLen]byte
	for i := checkLen - 1; i >= 0; i-- {
		out[i] = alphabet[n%base]
		n /= base
	}
	return out
}
