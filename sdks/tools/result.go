package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	holdfast "holdfast.dev/sdks/go"
)

// The bounds of a result.
const (
	maxBytes    = 32 << 10 // of its text, and of its structured content
	defaultRows = 10       // rows of a list, unless the client asks for another number
	longText    = 800      // characters of a text in a single object
	shortText   = 200      // characters of a text in a list
	lineText    = 100      // characters of a text in a row of an object
	nameText    = 255      // characters of a name or an address; the API has no longer ones
)

var errTooLarge = fmt.Errorf("the result exceeds %d KiB", maxBytes>>10)

// render returns a result as text and as structured content. Both have the same fields; amounts and times are written for people in the
// text.
func render(result any) (string, json.RawMessage, error) {
	var structured bytes.Buffer
	encoder := json.NewEncoder(&structured)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(result); err != nil {
		return "", nil, err
	}
	text, err := yaml.MarshalWithOptions(result, yaml.UseLiteralStyleIfMultiline(true))
	if err != nil {
		return "", nil, err
	}
	if max(structured.Len(), len(text)) > maxBytes {
		return "", nil, errTooLarge
	}
	return string(text), structured.Bytes(), nil
}

// fits reports whether a result has at most maxBytes.
func fits(result any) bool {
	_, _, err := render(result)
	return !errors.Is(err, errTooLarge)
}

// succeeded returns the result of a tool.
func succeeded(result any) (*mcp.CallToolResult, error) {
	text, structured, err := render(result)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: structured}, nil
}

// paging are the arguments of a tool that lists.
type paging struct {
	Limit  int    `json:"limit,omitempty" jsonschema:"rows; default 10" min:"1" max:"50"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the previous result" max:"2000"`
}

// list is a page of a list.
type list[T any] struct {
	TimeZone   string `json:"time_zone"`
	Rows       []T    `json:"rows"`
	NextCursor string `json:"next_cursor,omitempty"`
	More       string `json:"more,omitempty"`
}

const more = "There are more rows: repeat the call with cursor set to next_cursor and the same filters."

// rows gets a page and converts its rows. If they exceed the size of a result, it gets fewer, so that the cursor is right.
func rows[From, To any](v view, p paging, get func(limit int) (*holdfast.Page[From], error), convert func(From) To) (any, error) {
	limit := p.Limit
	if limit == 0 {
		limit = defaultRows
	}
	for {
		page, err := get(limit)
		if err != nil {
			return nil, err
		}
		result := list[To]{TimeZone: v.name(), Rows: make([]To, len(page.Data)), NextCursor: page.NextCursor}
		for i, row := range page.Data {
			result.Rows[i] = convert(row)
		}
		if page.NextCursor != "" {
			result.More = more
		}
		if fits(result) || limit == 1 {
			return result, nil
		}
		limit /= 2
	}
}

// cut shortens a text to a number of characters, and replaces control characters other than line breaks and tabs.
func cut(text string, length int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) <= length {
		return text
	}
	runes := []rune(text)
	return strings.TrimSpace(string(runes[:length])) + fmt.Sprintf("… (%d more characters)", len(runes)-length)
}

// value returns what a pointer points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
