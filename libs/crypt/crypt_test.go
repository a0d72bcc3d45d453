package crypt_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"holdfast.dev/libs/crypt"
)

var (
	oldKey = "2025:" + strings.Repeat("11", 32)
	newKey = "2026:" + strings.Repeat("22", 32)
)

func box(t *testing.T, keys string) *crypt.Box {
	t.Helper()
	b, err := crypt.NewBox(keys)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func seal(t *testing.T, b *crypt.Box, plain, aad string) []byte {
	t.Helper()
	sealed, err := b.Seal([]byte(plain), []byte(aad))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestRotation(t *testing.T) {
	t.Parallel()
	before, during, after := box(t, oldKey), box(t, newKey+","+oldKey), box(t, newKey)
	sealed := seal(t, before, "secret", "row 1")
	if plain, err := during.Open(sealed, []byte("row 1")); err != nil || string(plain) != "secret" {
		t.Errorf("with the new key in front: %q, %v", plain, err)
	}
	if _, err := after.Open(sealed, []byte("row 1")); !errors.Is(err, crypt.ErrOpen) {
		t.Errorf("with the old key gone: %v", err)
	}
	if plain, err := after.Open(seal(t, during, "fresh", "row 2"), []byte("row 2")); err != nil || string(plain) != "fresh" {
		t.Errorf("sealed during the rotation: %q, %v", plain, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	b := box(t, newKey+","+oldKey)
	sealed := seal(t, b, "secret", "row 1")
	if bytes.Contains(sealed, []byte("secret")) {
		t.Fatal("the plain text is in the sealed one")
	}
	if _, err := b.Open(sealed, []byte("row 2")); !errors.Is(err, crypt.ErrOpen) {
		t.Errorf("other associated data: %v", err)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := b.Open(changed, []byte("row 1")); !errors.Is(err, crypt.ErrOpen) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, err := b.Open(sealed[:i], []byte("row 1")); !errors.Is(err, crypt.ErrOpen) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
}

func TestNewBoxRefuses(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"", "a", "a:", "a:zz", "a:" + strings.Repeat("11", 16), ":" + strings.Repeat("11", 32), oldKey + "," + oldKey, oldKey + ","} {
		if _, err := crypt.NewBox(keys); err == nil {
			t.Errorf("%q was taken", keys)
		} else if strings.Contains(err.Error(), "1111") {
			t.Errorf("the error shows the key: %v", err)
		}
	}
}
