package command

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"holdfast.dev/sdks/cli/internal/output"
)

// rows writes the pages of a list one after the other.
type rows struct {
	call  *call
	begun bool // the head of the document is written
	some  bool // a row is written
}

// page writes a page: the whole response to a filter, otherwise its rows.
func (r *rows) page(ctx context.Context, response []byte, data []json.RawMessage) error {
	c := r.call
	switch {
	case c.jq != nil:
		return c.jq.Write(ctx, c.app.Out, response)
	case c.format == formatTable:
		return c.table.rows(ctx, data)
	case c.format == formatYAML:
		return r.yaml(data)
	}
	return r.json(data)
}

// json writes rows of one array.
func (r *rows) json(data []json.RawMessage) error {
	if !r.begun {
		r.begun = true
		if _, err := io.WriteString(r.call.app.Out, `{"data":[`); err != nil {
			return err
		}
	}
	for _, row := range data {
		separator := "\n"
		if r.some {
			separator = ",\n"
		}
		r.some = true
		var text bytes.Buffer
		if err := json.Compact(&text, row); err != nil {
			return err
		}
		if err := r.call.app.Out.Text(separator + text.String()); err != nil {
			return err
		}
	}
	return nil
}

// yaml writes rows of one list.
func (r *rows) yaml(data []json.RawMessage) error {
	if len(data) == 0 {
		return nil
	}
	if !r.begun {
		r.begun = true
		if _, err := io.WriteString(r.call.app.Out, "data:\n"); err != nil {
			return err
		}
	}
	list, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return output.YAML(r.call.app.Out, list)
}

// end writes the end of the document, which has the form of a last page.
func (r *rows) end() error {
	c := r.call
	text := ""
	switch {
	case c.jq != nil || c.format == formatTable:
		return nil
	case c.format == formatYAML && !r.begun:
		text = "data: []\nhas_more: false\nnext_cursor: null\n"
	case c.format == formatYAML:
		text = "has_more: false\nnext_cursor: null\n"
	default:
		text = "\n],\"has_more\":false,\"next_cursor\":null}\n"
	}
	_, err := io.WriteString(c.app.Out, text)
	return err
}
