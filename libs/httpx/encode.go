package httpx

import (
	"strconv"

	"holdfast.dev/libs/contract"
)

// Encode is contract.Encode.
func Encode(v any) ([]byte, error) { return contract.Encode(v) }

// ETag is the entity tag of a version.
func ETag(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }
