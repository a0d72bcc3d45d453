package holdfast

import (
	"context"
	"io"
	"mime"
	"net/http"
)

// Document is a response that is not JSON, such as a PDF or a list as CSV. Close it after reading.
type Document struct {
	io.ReadCloser

	ContentType string
	FileName    string // "" if the API suggests none
	ETag        string
	NotModified bool // your copy with the entity tag that you sent is current; there is nothing to read
}

// document sends a request whose response is a document of a media type.
func document(ctx context.Context, c *Client, request call, options []Option) (*Document, error) {
	r, err := c.open(ctx, request, options)
	if err != nil {
		return nil, err
	}
	d := &Document{
		ReadCloser: r.body, ContentType: r.header.Get("Content-Type"), ETag: r.header.Get("ETag"),
		NotModified: r.status == http.StatusNotModified,
	}
	if _, parameters, err := mime.ParseMediaType(r.header.Get("Content-Disposition")); err == nil {
		d.FileName = parameters["filename"]
	}
	return d, nil
}
