package ids

import (
	"encoding/hex"
	"strings"

	"go.jetify.com/typeid"
)

// Public returns the public form of a stored uuid (36 characters) with a prefix. A key that is no uuid, such as an id of the payment
// gateway, is its own public form.
func Public(prefix, key string) string {
	u, err := hex.DecodeString(strings.ReplaceAll(key, "-", ""))
	if err != nil || len(key) != 36 {
		return key
	}
	tid, err := typeid.FromUUIDBytesWithPrefix(prefix, u)
	if err != nil {
		return key
	}
	return tid.String()
}

// Stored is the reverse of Public: it returns the prefix of a public id, and the uuid in its stored form, or the id itself if it
// holds no uuid.
func Stored(public string) (prefix, key string) {
	prefix, _, _ = strings.Cut(public, "_")
	tid, err := typeid.FromString(public)
	if err != nil || tid.String() != public {
		return prefix, public
	}
	return tid.Prefix(), tid.UUID()
}
