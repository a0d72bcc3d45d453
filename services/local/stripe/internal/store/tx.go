package store

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"iter"
	"time"

	"go.etcd.io/bbolt"

	"holdfast.dev/services/local/stripe/internal/domain"
)

// Tx is a transaction.
type Tx struct {
	bolt  *bbolt.Tx
	db    *DB
	now   time.Time
	after []func()
}

// Now returns the time of the transaction.
func (t *Tx) Now() time.Time { return t.now }

// After registers next to run when the change is in the file.
func (t *Tx) After(next func()) { t.after = append(t.after, next) }

func (t *Tx) bucket(name string) *bbolt.Bucket { return t.bolt.Bucket([]byte(name)) }

// alphabet is in byte order, so that ids sort by time.
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewID creates an id. Later ids of a kind sort after earlier ones.
func (t *Tx) NewID(kind Kind) string {
	t.db.last = max(t.db.last+1, t.now.UnixMicro())
	var digits [9]byte
	for i, n := len(digits)-1, t.db.last; i >= 0; i, n = i-1, n/62 {
		digits[i] = alphabet[n%62]
	}
	return string(kind) + "_3" + string(digits[:]) + Random(14)
}

// Random returns n random letters and digits.
func Random(n int) string {
	text := make([]byte, n)
	_, _ = rand.Read(text) // never fails
	for i, b := range text {
		text[i] = alphabet[int(b)%len(alphabet)]
	}
	return string(text)
}

func key(s domain.Scope, id string) []byte { return []byte(s.Prefix() + id) }

// Put stores an object.
func (t *Tx) Put(s domain.Scope, kind Kind, id string, object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return t.bucket(string(kind)).Put(key(s, id), text)
}

// Raw returns an object's JSON; nil if there is none. It is valid only during the transaction.
func (t *Tx) Raw(s domain.Scope, kind Kind, id string) []byte {
	return t.bucket(string(kind)).Get(key(s, id))
}

// Get returns an object; nil if there is none.
func Get[T any](t *Tx, s domain.Scope, kind Kind, id string) (*T, error) {
	text := t.Raw(s, kind, id)
	if text == nil {
		return nil, nil //nolint:nilnil // none is no error
	}
	object := new(T)
	return object, json.Unmarshal(text, object)
}

// Newest iterates over the objects of a kind with their ids, the newest first. It starts before the given id; "" starts with the
// newest.
func (t *Tx) Newest(s domain.Scope, kind Kind, before string) iter.Seq2[string, []byte] {
	return t.backward(string(kind), s.Prefix(), before)
}

// Oldest iterates over the objects of a kind with their ids, the oldest first. It starts after the given id.
func (t *Tx) Oldest(s domain.Scope, kind Kind, after string) iter.Seq2[string, []byte] {
	prefix := []byte(s.Prefix())
	return func(yield func(string, []byte) bool) {
		c := t.bucket(string(kind)).Cursor()
		k, v := c.Seek(append(prefix, after...))
		if after != "" && string(k) == string(prefix)+after {
			k, v = c.Next()
		}
		for ; bytes.HasPrefix(k, prefix) && yield(string(k[len(prefix):]), v); k, v = c.Next() { //nolint:revive // the loop is its head
		}
	}
}

// Index stores the id of an object of an intent.
func (t *Tx) Index(s domain.Scope, kind Kind, intent, id string) error {
	return t.bucket(indexBucket).Put([]byte(indexPrefix(s, kind, intent)+id), []byte{})
}

// OfIntent iterates over an intent's objects of a kind with their ids, the newest first. It starts before the given id.
func (t *Tx) OfIntent(s domain.Scope, kind Kind, intent, before string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for id := range t.backward(indexBucket, indexPrefix(s, kind, intent), before) {
			if !yield(id, t.Raw(s, kind, id)) {
				return
			}
		}
	}
}

func indexPrefix(s domain.Scope, kind Kind, intent string) string {
	return s.Prefix() + string(kind) + "\x00" + intent + "\x00"
}

// backward iterates over the keys with a prefix, without the prefix, in descending order.
func (t *Tx) backward(bucket, prefix, before string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		c := t.bucket(bucket).Cursor()
		end := prefix + before
		if before == "" {
			end = prefix + "\xff\xff"
		}
		k, v := c.Seek([]byte(end))
		if k == nil {
			k, v = c.Last()
		}
		for k != nil && string(k) >= end {
			k, v = c.Prev()
		}
		for ; bytes.HasPrefix(k, []byte(prefix)) && yield(string(k[len(prefix):]), v); k, v = c.Prev() { //nolint:revive // the loop is its head
		}
	}
}
