package apikey_test

import (
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"math/big"
	"strings"
	"testing"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
)

func TestNewIsValid(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 2000 {
		for _, mode := range []caller.Mode{caller.Live, caller.Test} {
			key := apikey.New(mode)
			got, ok := apikey.Valid(key)
			if !ok || got != mode || seen[key] || len(key) != 9+32 || !strings.HasPrefix(key, "svc_"+string(mode)+"_") {
				t.Fatalf("New(%s) = %q: mode %q, valid %v, seen %v", mode, key, got, ok, seen[key])
			}
			seen[key] = true
		}
	}
}

// The test computes the checksum in another way: the standard library's base 62 begins with lower case, so its digits are mapped.
func TestChecksumForm(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"svc_live_" + strings.Repeat("0", 26), "svc_test_" + strings.Repeat("aZ", 13)} {
		n := new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(head))))
		digits := strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z':
				return r - 'a' + 'A'
			case r >= 'A' && r <= 'Z':
				return r - 'A' + 'a'
			}
			return r
		}, n.Text(62))
		key := head + fmt.Sprintf("%06s", digits)
		if _, ok := apikey.Valid(key); !ok {
			t.Errorf("Valid(%q) = false", key)
		}
	}
}

func TestOneWrongCharacterIsRefused(t *testing.T) {
	t.Parallel()
	key := apikey.New(caller.Test)
	for i := range len(key) {
		wrong := []byte(key)
		wrong[i] ^= 1
		if _, ok := apikey.Valid(string(wrong)); ok {
			t.Errorf("byte %d turned: %q is valid", i, wrong)
		}
	}
	for _, s := range []string{"", "svc_", "svc_live_", key[:len(key)-1], key + "0", " " + key, strings.ToUpper(key)} {
		if _, ok := apikey.Valid(s); ok {
			t.Errorf("%q is valid", s)
		}
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	if apikey.Hash("abc") != sha256.Sum256([]byte("abc")) {
		t.Error("Hash is not SHA-256")
	}
}

func FuzzKey(f *testing.F) {
	f.Add("svc_live_" + strings.Repeat("0", 32))
	f.Add("svc_test_0123456789ABCDEFGHIJKLMNOP000000")
	f.Add("svc_test_éééééééééééééééé")
	f.Fuzz(func(t *testing.T, s string) {
		mode, ok := apikey.Valid(s)
		if !ok {
			return
		}
		if len(s) != 41 || !strings.HasPrefix(s, "svc_"+string(mode)+"_") {
			t.Fatalf("%q passed as %q", s, mode)
		}
		if _, again := apikey.Valid(s[:40] + string(s[40]^1)); again {
			t.Fatalf("%q passes with another checksum", s)
		}
	})
}
