package view

import (
	"encoding/json"

	"holdfast.dev/libs/httpx"
)

// Render is v as it is stored and sent: JSON without HTML escapes and without a final newline.
func Render(v any) (json.RawMessage, error) { return httpx.Encode(v) }
