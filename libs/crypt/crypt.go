// Package crypt seals small secrets for storage with AES-256-GCM (Tink), under named keys that can be rotated.
package crypt

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/tink-crypto/tink-go/v2/aead/subtle"

	"holdfast.dev/libs/secret"
)

// ErrOpen reports that a sealed text was changed, was sealed for other associated data, or names an unknown key.
var ErrOpen = errors.New("sealed text cannot be opened")

const (
	version  = 1
	keyBytes = 32
	maxKeyID = 32
)

// Box seals with its first key and opens with any of them.
type Box struct{ current func() *ring }

// ring contains the keys of a box.
type ring struct {
	first string
	keys  map[string]*subtle.AESGCM
}

// FollowKeys returns a box with the keys of a setting, and switches to those of its file when it changes. The keys have the form of
// NewBox.
func FollowKeys(s secret.Setting) (*Box, error) {
	current, err := secret.Follow(s, parse)
	if err != nil {
		return nil, err
	}
	return &Box{current}, nil
}

// NewBox reads "<kid>:<hex of 32 bytes>[,<kid>:<hex>…]". To rotate keys, put the new key first and remove the old one when no text
// is sealed with it.
func NewBox(keys string) (*Box, error) {
	r, err := parse(keys)
	if err != nil {
		return nil, err
	}
	return &Box{func() *ring { return r }}, nil
}

func parse(keys string) (*ring, error) {
	b := &ring{keys: map[string]*subtle.AESGCM{}}
	for i, entry := range strings.Split(keys, ",") {
		id, secret, _ := strings.Cut(entry, ":")
		raw, err := hex.DecodeString(secret)
		if err != nil || len(raw) != keyBytes || id == "" || len(id) > maxKeyID {
			return nil, fmt.Errorf("encryption key %d: want <kid>:<hex of %d bytes>", i+1, keyBytes)
		}
		if _, twice := b.keys[id]; twice {
			return nil, fmt.Errorf("encryption key %d: key id %q is used twice", i+1, id)
		}
		if b.keys[id], err = subtle.NewAESGCM(raw); err != nil {
			return nil, fmt.Errorf("encryption key %d: %w", i+1, err)
		}
		if i == 0 {
			b.first = id
		}
	}
	return b, nil
}

// Head returns the prefix of every text that Seal creates. No text under another key has it.
func (b *Box) Head() []byte { return b.current().head() }

func (b *ring) head() []byte {
	return append([]byte{version, byte(len(b.first))}, b.first...)
}

// Seal encrypts plain and binds it to aad, which must also be passed to Open. aad should identify the row that the text belongs to.
func (b *Box) Seal(plain, aad []byte) ([]byte, error) {
	keys := b.current()
	head := keys.head()
	sealed, err := keys.keys[keys.first].Encrypt(plain, bind(head, aad))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return append(head, sealed...), nil
}

// Open decrypts a text that Seal returned for the same aad. For any other input it returns ErrOpen.
func (b *Box) Open(sealed, aad []byte) ([]byte, error) {
	if len(sealed) < 2 || sealed[0] != version || len(sealed) < 2+int(sealed[1]) {
		return nil, ErrOpen
	}
	n := 2 + int(sealed[1])
	key, ok := b.current().keys[string(sealed[2:n])]
	if !ok {
		return nil, fmt.Errorf("%w: unknown key %q", ErrOpen, sealed[2:n])
	}
	plain, err := key.Decrypt(sealed[n:], bind(sealed[:n], aad))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

// bind prepends the head, which contains its own length, to aad, so that the key id cannot be changed.
func bind(head, aad []byte) []byte {
	out := make([]byte, 0, len(head)+len(aad))
	return append(append(out, head...), aad...)
}
