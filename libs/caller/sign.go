package caller

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"
	"time"

	"holdfast.dev/libs/secret"
)

// Header is the request header that carries the signed caller. The gateway deletes it from requests of clients.
const Header = "X-Caller"

const lifetime = 60 * time.Second

// ErrInvalid reports that a signed caller is missing, forged, expired, or meant for another call.
var ErrInvalid = errors.New("invalid signed caller")

// Call is the part of a statement that describes the call; the rest describes the caller.
type Call struct {
	Target      string `json:"aud"`
	Method      string `json:"m"`
	Path        string `json:"p"` // without the query
	RequestID   string `json:"rid"`
	Fingerprint []byte `json:"fp,omitempty"` // of the request, if it has an idempotency key and the sender computed it
	Expiry      int64  `json:"exp"`          // set by SignEncoded
}

// Key is one shared secret with its id.
type Key struct {
	ID     string
	Secret []byte
}

// Keys maps a peer's name to its keys. The first key signs and all keys verify, so keys can be rotated without rejecting calls.
type Keys map[string][]Key

// For returns the keys of a peer.
func (k Keys) For(peer string) []Key { return k[peer] }

// KeySource provides the keys of each peer. Keys is a fixed one.
type KeySource interface{ For(peer string) []Key }

// FollowKeys returns the keys of a setting like ParseKeys, and switches to those of its file when it changes.
func FollowKeys(s secret.Setting) (KeySource, error) {
	current, err := secret.Follow(s, ParseKeys)
	if err != nil {
		return nil, err
	}
	return followed(current), nil
}

// followed returns the current keys.
type followed func() Keys

// For implements KeySource.
func (f followed) For(peer string) []Key { return f()[peer] }

var errForm = errors.New("caller keys: want <peer>=<kid>:<hex>")

// ParseKeys reads "<peer>=<kid>:<hex>[;<kid>:<hex>…][,<peer>=…]".
func ParseKeys(s string) (Keys, error) {
	keys := Keys{}
	for entry := range strings.SplitSeq(s, ",") {
		if entry == "" {
			continue
		}
		peer, list, ok := strings.Cut(entry, "=")
		if !ok {
			return nil, errForm // without the entry, which can be a key
		}
		for one := range strings.SplitSeq(list, ";") {
			kid, secret, ok := strings.Cut(one, ":")
			raw, err := hex.DecodeString(secret)
			if !ok || err != nil || len(raw) < 32 {
				return nil, fmt.Errorf("caller keys: peer %q: want <kid>:<hex> of at least 32 bytes", peer)
			}
			keys[peer] = append(keys[peer], Key{ID: kid, Secret: raw})
		}
	}
	return keys, nil
}

// Signer signs calls of the service From to the targets in Keys. The header is <from>.<key id>.<caller>.<call>.<mac>;
// caller and call are JSON in base64url.
type Signer struct {
	From string
	Keys KeySource
}

// Encoded is a caller in the form used in a statement. Encode a caller once when it signs many calls.
type Encoded string

// Encode encodes c without its request id and fingerprint, which belong to a single call.
func Encode(c Caller) (Encoded, error) {
	c.RequestID = ""
	payload, err := json.Marshal(c) //nolint:gosec // Credential is an id
	if err != nil {
		return "", fmt.Errorf("encode caller: %w", err)
	}
	return Encoded(base64.RawURLEncoding.EncodeToString(payload)), nil
}

// Sign returns the header value for one call to target; path is without the query.
func (s *Signer) Sign(c Caller, target, method, path string, now time.Time) (string, error) {
	who, err := Encode(c)
	if err != nil {
		return "", err
	}
	return s.SignEncoded(who, Call{Target: target, Method: method, Path: path, RequestID: c.RequestID}, now)
}

// SignEncoded is Sign for a caller that is already encoded.
func (s *Signer) SignEncoded(who Encoded, call Call, now time.Time) (string, error) {
	keys := s.Keys.For(call.Target)
	if len(keys) == 0 {
		return "", fmt.Errorf("no caller key for target %q", call.Target)
	}
	call.Expiry = now.Add(lifetime).Unix()
	payload, err := json.Marshal(call)
	if err != nil {
		return "", fmt.Errorf("encode call: %w", err)
	}
	out := make([]byte, 0, 512)
	out = append(append(append(append(out, s.From...), '.'), keys[0].ID...), '.')
	out = append(append(out, who...), '.')
	out = base64.RawURLEncoding.AppendEncode(out, payload)
	sum := mac(keys[0].Secret, out)
	return string(base64.RawURLEncoding.AppendEncode(append(out, '.'), sum)), nil
}

// Verifier checks calls that reach the service Self; Keys holds each permitted caller's keys. It is safe for concurrent use. Do not
// copy it after its first use.
type Verifier struct {
	Self string
	Keys KeySource

	callers decoded
}

// Verify returns the caller in a header value, and the name of the service that signed it.
func (v *Verifier) Verify(header, method, path string, now time.Time) (Caller, string, error) {
	signed, sig, ok := cutLast(header)
	parts := strings.Split(signed, ".")
	if !ok || len(parts) != 4 {
		return Caller{}, "", ErrInvalid
	}
	got, err := base64.RawURLEncoding.Strict().DecodeString(sig)
	if err != nil || !v.known(parts[0], parts[1], signed, got) {
		return Caller{}, "", ErrInvalid
	}
	var to Call
	c, ok := v.callers.decode(parts[2])
	if !ok || !decode(parts[3], &to) {
		return Caller{}, "", ErrInvalid
	}
	if to.Target != v.Self || to.Method != method || to.Path != path || now.Unix() > to.Expiry {
		return Caller{}, "", ErrInvalid
	}
	c.RequestID, c.Fingerprint = to.RequestID, to.Fingerprint
	return c, parts[0], nil
}

func decode(part string, into any) bool {
	payload, err := base64.RawURLEncoding.Strict().DecodeString(part)
	return err == nil && json.Unmarshal(payload, into) == nil
}

func (v *Verifier) known(peer, kid, signed string, got []byte) bool {
	for _, k := range v.Keys.For(peer) {
		if k.ID == kid && hmac.Equal(got, mac(k.Secret, []byte(signed))) {
			return true
		}
	}
	return false
}

// hashes contains a pool of hashes for each secret. A hash that was used once has stored its first block, which depends only on the
// secret.
var hashes sync.Map // of *sync.Pool, by the secret as a string

func mac(secret, text []byte) []byte {
	pool, ok := hashes.Load(string(secret))
	if !ok {
		pool, _ = hashes.LoadOrStore(string(secret), &sync.Pool{New: func() any { return hmac.New(sha256.New, secret) }})
	}
	h := pool.(*sync.Pool).Get().(hash.Hash)
	defer pool.(*sync.Pool).Put(h)
	h.Reset()
	h.Write(text)
	return h.Sum(nil)
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}
