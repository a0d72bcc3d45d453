package httpx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Encode is JSON as all bodies have it: no HTML escapes and no final newline. The bytes are those that are
// stored, sent and published.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode body: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// ETag is the entity tag of a version.
func ETag(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }
