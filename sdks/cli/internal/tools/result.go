package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	holdfast "holdfast.dev/sdks/go"
)

// The bounds of a result.
const (
	maxBytes  = 32 << 10 // of its text, and of its structured content
	maxRows   = 50
	someRows  = 10   // rows of a list, unless the client asks for another number
	longText  = 1000 // characters of a text in a single object
	shortText = 200  // characters of a text in a list
)

var errTooLarge = fmt.Errorf("the result exceeds %d KiB", maxBytes>>10)

// render returns a result as text and as structured content. Both have the same fields; amounts and times are written for people in the
// text.
func render(result any) (string, json.RawMessage, error) {
	structured, err := json.Marshal(result)
	if err != nil {
		return "", nil, err
	}
	text, err := yaml.MarshalWithOptions(result, yaml.UseLiteralStyleIfMultiline(true))
	if err != nil {
		return "", nil, err
	}
	if max(len(structured), len(text)) > maxBytes {
		return "", nil, errTooLarge
	}
	return string(text), structured, nil
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
		limit = someRows
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
		_, _, err = render(result)
		if !errors.Is(err, errTooLarge) || limit == 1 {
			return result, err
		}
		limit /= 2
	}
}

// cut shortens a text to a number of characters.
func cut(text string, length int) string {
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
