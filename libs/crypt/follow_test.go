package crypt_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/secret"
)

// A box seals with the first key of its file's newest valid content and opens what the earlier keys in it sealed.
func TestBoxFollowsItsFile(t *testing.T) {
	t.Parallel()
	first, second := "a:"+strings.Repeat("1a", 32), "b:"+strings.Repeat("2b", 32)
	file := filepath.Join(t.TempDir(), "keys")
	s := secret.New(first)
	s.InFile("SERVICE_ENCRYPTION_KEYS", file)
	b, err := crypt.FollowKeys(s)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := b.Seal([]byte("text"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for content, head := range map[string]string{"not a key": "a", second + "," + first: "b"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Reload(); (err != nil) != (content == "not a key") {
			t.Errorf("%s: %v", content, err)
		}
		if plain, err := b.Open(sealed, nil); err != nil || string(plain) != "text" {
			t.Errorf("%q, %v", plain, err)
		}
		if content != "not a key" && !bytes.HasSuffix(b.Head(), []byte(head)) {
			t.Errorf("it seals with %q", b.Head())
		}
	}
}
