package output

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/itchyny/gojq"
)

// JSON writes a document: indented on a terminal, otherwise in one line.
func JSON(to Stream, document []byte) error {
	var text bytes.Buffer
	var err error
	if to.Terminal {
		err = json.Indent(&text, document, "", "  ")
	} else {
		err = json.Compact(&text, document)
	}
	if err != nil {
		return fmt.Errorf("the response is not JSON: %w", err)
	}
	return to.Text(text.String() + "\n")
}

// YAML writes a JSON document as YAML, with the properties in the same order.
func YAML(to Stream, document []byte) error {
	text, err := yaml.JSONToYAML(document)
	if err != nil {
		return fmt.Errorf("the response is not JSON: %w", err)
	}
	return to.Text(string(text))
}

// Filter is a compiled jq filter.
type Filter struct{ code *gojq.Code }

// NewFilter compiles a jq filter. It cannot read files, input or the environment.
func NewFilter(text string) (*Filter, error) {
	query, err := gojq.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--jq: %w", err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, fmt.Errorf("--jq: %w", err)
	}
	return &Filter{code}, nil
}

// Write writes the results of the filter, one per line. Strings are written without quotes.
func (f *Filter) Write(ctx context.Context, to Stream, document []byte) error {
	var value any
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return fmt.Errorf("the response is not JSON: %w", err)
	}
	results := f.code.RunWithContext(ctx, value)
	for {
		result, ok := results.Next()
		if !ok {
			return nil
		}
		if err, ok := result.(error); ok {
			if halt := (*gojq.HaltError)(nil); errors.As(err, &halt) && halt.Value() == nil {
				return nil
			}
			return fmt.Errorf("--jq: %w", err)
		}
		if err := to.Text(text(result) + "\n"); err != nil {
			return err
		}
	}
}

// text returns a result of a filter as one line of text.
func text(result any) string {
	if s, ok := result.(string); ok {
		return s
	}
	encoded, err := gojq.Marshal(result)
	if err != nil {
		return fmt.Sprint(result)
	}
	return strings.TrimSpace(string(encoded))
}
