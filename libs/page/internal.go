package page

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
)

// Text returns a position as the cursor of a call between services, which needs no signature.
func (p Position) Text() string {
	return strconv.FormatInt(p.At.UnixMicro(), 10) + "." + hex.EncodeToString(p.ID[:])
}

// ParsePosition parses the result of Text. "" is the first page.
func ParsePosition(cursor string) (*Position, error) {
	if cursor == "" {
		return nil, nil
	}
	at, id, _ := strings.Cut(cursor, ".")
	micro, err := strconv.ParseInt(at, 10, 64)
	raw, wrong := hex.DecodeString(id)
	p := Position{At: time.UnixMicro(micro).UTC()}
	if err != nil || wrong != nil || copy(p.ID[:], raw) != len(p.ID) || len(raw) != len(p.ID) {
		return nil, apperr.Field("cursor", "Must be the next of a previous response.")
	}
	return &p, nil
}
