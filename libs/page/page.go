// Package page parses a list's position, order and limit, and creates cursors. A cursor is opaque and authenticated: a MAC binds it
// to the operation, tenant, mode, sort and filters that it was created for, so it cannot be forged or used for another list. Paging
// is by keyset: inserts and deletes between pages neither repeat nor skip a row.
package page

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/secret"
)

const (
	version = 1
	macSize = 16
	// DefaultLimit is the page size when the request has no limit. The contract bounds it.
	DefaultLimit = 25
)

// Position identifies the last row on a page: its sort time, at full precision, and its id.
type Position struct {
	At time.Time
	ID [16]byte
}

// Request is one page to read.
type Request struct {
	Limit int
	// Updated is true for sort=updated_at, oldest first. Otherwise the order is created_at, newest first.
	Updated bool
	// By is another order, upwards, that the list offers: sort=<By>. The table has the column sort_<By>. "" is none.
	By string
	// After is the position after which the page begins; nil for the first page.
	After *Position

	CreatedAfter, CreatedBefore, UpdatedAfter, UpdatedBefore *time.Time

	binding []byte
	count   *int // if set, Read only counts the rows
}

// Codec signs cursors with its first key and verifies with all keys, so that keys can be rotated and replicas accept
// each other's cursors.
type Codec struct{ keys func() []key }

type key struct {
	id     string
	secret []byte
}

// FollowKeys returns a codec with the keys of a setting, and switches to those of its file when it changes. The keys have the form of
// NewCodec.
func FollowKeys(s secret.Setting) (*Codec, error) {
	current, err := secret.Follow(s, parseKeys)
	if err != nil {
		return nil, err
	}
	return &Codec{current}, nil
}

// NewCodec reads "<kid>:<hex>[,<kid>:<hex>…]". A kid has 1 to 8 characters, a secret at least 32 bytes.
func NewCodec(keys string) (*Codec, error) {
	list, err := parseKeys(keys)
	if err != nil {
		return nil, err
	}
	return &Codec{func() []key { return list }}, nil
}

func parseKeys(keys string) (list []key, err error) {
	for i, entry := range strings.Split(keys, ",") {
		kid, secret, ok := strings.Cut(entry, ":")
		raw, err := hex.DecodeString(secret)
		if !ok || err != nil || len(raw) < 32 || kid == "" || len(kid) > 8 {
			return nil, fmt.Errorf("cursor key %d: want <kid>:<hex> of at least 32 bytes", i+1) // without the entry, which can be a key
		}
		list = append(list, key{id: kid, secret: raw})
	}
	return list, nil
}

// Parse reads the paging parameters of a list operation. Without a cursor, or with an empty one, it is the first page. It returns apperr.ErrCursor for a cursor that is forged or was created for
// another list.
func (c *Codec) Parse(ctx context.Context, q contract.Query, operation string) (Request, error) {
	r := Request{Limit: q.Int("limit", DefaultLimit)}
	switch sort := q.String("sort"); sort {
	case "", "created_at":
	case "updated_at":
		r.Updated = true
	default: // the contract lists the values
		r.By = sort
	}
	for name, dst := range map[string]**time.Time{
		"created_after": &r.CreatedAfter, "created_before": &r.CreatedBefore,
		"updated_after": &r.UpdatedAfter, "updated_before": &r.UpdatedBefore,
	} {
		if at, ok := q.Time(name); ok {
			*dst = &at
		}
	}
	r.binding = binding(ctx, operation, q)
	cursor := q.String("cursor")
	if cursor == "" {
		return r, nil
	}
	after, err := c.open(cursor, r.binding)
	if err != nil {
		return Request{}, err
	}
	r.After = after
	return r, nil
}

// Next creates the cursor of the page after last.
func (c *Codec) Next(r Request, last Position) string {
	k := c.keys()[0]
	out := make([]byte, 0, 2+len(k.id)+8+16+macSize)
	out = append(out, version, byte(len(k.id)))
	out = append(out, k.id...)
	out = binary.BigEndian.AppendUint64(out, uint64(last.At.UnixMicro()))
	out = append(out, last.ID[:]...)
	return base64.RawURLEncoding.EncodeToString(append(out, mac(k.secret, out, r.binding)...))
}

func (c *Codec) open(cursor string, binding []byte) (*Position, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) < 2 || raw[0] != version {
		return nil, apperr.ErrCursor
	}
	kidLen := int(raw[1])
	if len(raw) != 2+kidLen+8+16+macSize {
		return nil, apperr.ErrCursor
	}
	signed, sum := raw[:len(raw)-macSize], raw[len(raw)-macSize:]
	kid, body := string(signed[2:2+kidLen]), signed[2+kidLen:]
	for _, k := range c.keys() {
		if k.id == kid && hmac.Equal(sum, mac(k.secret, signed, binding)) {
			at := time.UnixMicro(int64(binary.BigEndian.Uint64(body))).UTC()
			return &Position{At: at, ID: [16]byte(body[8:])}, nil
		}
	}
	return nil, apperr.ErrCursor
}

func mac(secret, signed, binding []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write(signed)
	h.Write(binding)
	return h.Sum(nil)[:macSize]
}

// binding returns the parameters that must not change between pages: all except limit, expand, base and credential.
func binding(ctx context.Context, operation string, q contract.Query) []byte {
	c := caller.FromContext(ctx)
	return []byte(strings.Join([]string{
		operation, c.Tenant.String(), string(c.Mode), q.Canonical("cursor", "limit", "expand"),
	}, "\x00"))
}
