package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/cli/internal/operations"
	"holdfast.dev/sdks/cli/internal/output"
	"holdfast.dev/sdks/cli/internal/profile"
)

// The output formats.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatCSV   = "csv"
)

// call is one use of an operation's command, with the values of its flags.
type call struct {
	app  *App
	op   operations.Operation
	name string // bookings create

	fields, query, headers []*input
	data, key              string
	clear, columns         []string
	version                int64
	yes, all, dry          bool
	format, filter, file   string

	jq    *output.Filter
	table *listTable // nil unless the output is a table of a list
}

// formats returns the formats that the operation has.
func (c *call) formats() []string {
	all := []string{formatTable, formatJSON, formatYAML}
	if c.op.CSV {
		all = append(all, formatCSV)
	}
	return all
}

// run carries out the operation.
func (c *call) run(ctx context.Context, ids []string) error {
	if err := c.check(); err != nil {
		return err
	}
	request, err := c.request(ids)
	if err != nil {
		return err
	}
	s, err := c.app.session(ctx)
	if err != nil {
		return err
	}
	if c.dry {
		_, err := fmt.Fprintln(c.app.Out, curl(s.Profile.BaseURL, request, c.key, c.version, strings.TrimPrefix(c.file, "-")))
		return err
	}
	if c.op.Write() {
		if err := c.app.confirm(ctx, s, request.Method+" "+request.Path, c.yes); err != nil {
			return err
		}
	}
	if c.op.List && c.format == formatTable && c.op.Kind != operations.Stream {
		if c.table, err = c.newTable(ctx, s, &request); err != nil {
			return err
		}
	}
	switch {
	case c.op.Kind == operations.Stream:
		return c.stream(ctx, s)
	case c.op.Kind == operations.Raw:
		return c.document(ctx, s, request)
	case c.format == formatCSV:
		return c.csv(ctx, s, request)
	case c.all:
		return c.pages(ctx, s, request)
	}
	response, err := s.Do(ctx, request, c.options()...)
	if err != nil {
		return err
	}
	return c.write(ctx, response)
}

// check checks the flags that do not depend on the API.
func (c *call) check() (err error) {
	if c.filter != "" {
		if c.format != "" && c.format != formatJSON {
			return usagef("--jq filters JSON: leave out --output %s", c.format)
		}
		if c.jq, err = output.NewFilter(c.filter); err != nil {
			return usage(err)
		}
	}
	for _, i := range slices.Concat(c.fields, c.query, c.headers) {
		if len(i.given) > 1 && i.single() {
			return usagef("--%s was given twice", flagName(i.param.Name))
		}
	}
	if err := c.checkFormat(); err != nil {
		return err
	}
	if c.version < 0 {
		return usagef("--if-match must be a version, which is at least 1")
	}
	return nil
}

// checkFormat checks the columns and the format, and sets the default format.
func (c *call) checkFormat() error {
	if len(c.columns) > 0 {
		if c.filter != "" || c.format != "" && c.format != formatTable {
			return usagef("--columns chooses the columns of a table: leave out --output and --jq")
		}
		if err := checkColumns(c.op, c.columns); err != nil {
			return err
		}
	}
	if c.format == "" {
		c.format = formatJSON
		if c.app.Out.Terminal && c.filter == "" || len(c.columns) > 0 {
			c.format = formatTable
		}
	}
	if c.op.Kind != operations.Raw && !slices.Contains(c.formats(), c.format) {
		return usagef("--output must be %s, not %q", strings.Join(c.formats(), ", "), c.format)
	}
	return nil
}

// request returns the request of the command line.
func (c *call) request(ids []string) (holdfast.Request, error) {
	r := holdfast.Request{Method: c.op.Method, Path: c.op.Path, Query: query(c.query)}
	for i, p := range c.op.PathParams {
		if ids[i] == "" {
			return r, usagef("%s is empty", strings.ToUpper(p.Name))
		}
		r.Path = strings.Replace(r.Path, "{"+p.Name+"}", url.PathEscape(ids[i]), 1)
	}
	if c.op.Kind == operations.Raw {
		r.Accept = c.op.MediaType
	}
	if c.format == formatCSV {
		r.Accept = "text/csv"
		r.Query.Del("limit")
		r.Query.Del("cursor")
	}
	if !c.op.Body {
		return r, nil
	}
	var err error
	r.Body, err = body(c.data, c.app.In, c.fields, c.clear)
	if err == nil && r.Body == nil {
		r.Body = json.RawMessage("{}")
	}
	return r, err
}

// options returns the options of the request.
func (c *call) options() []holdfast.Option {
	var all []holdfast.Option
	if c.key != "" {
		all = append(all, holdfast.WithIdempotencyKey(c.key))
	}
	if c.version > 0 {
		all = append(all, holdfast.WithIfMatch(c.version))
	}
	for _, i := range c.headers {
		if len(i.given) > 0 {
			all = append(all, holdfast.WithHeader(i.param.Name, i.given[0]))
		}
	}
	return all
}

// write writes a response.
func (c *call) write(ctx context.Context, response []byte) error {
	switch {
	case len(bytes.TrimSpace(response)) == 0: // deleted
		return nil
	case c.jq != nil:
		return c.jq.Write(ctx, c.app.Out, response)
	case c.format == formatJSON:
		return output.JSON(c.app.Out, response)
	case c.format == formatYAML:
		return output.YAML(c.app.Out, response)
	case !c.op.List:
		return output.Object(c.app.Out, response)
	}
	page, err := readPage(response)
	if err != nil {
		return err
	}
	if err := c.table.rows(ctx, page.Data); err != nil {
		return err
	}
	if page.NextCursor != "" {
		c.app.note("There are more rows: add --all, or --cursor %s", page.NextCursor)
	}
	return nil
}

// page is a page of a list.
type page struct {
	Data       []json.RawMessage `json:"data"`
	HasMore    bool              `json:"has_more"`
	NextCursor string            `json:"next_cursor"`
}

func readPage(response []byte) (page, error) {
	var p page
	if err := json.Unmarshal(response, &p); err != nil {
		return p, fmt.Errorf("the response is not a page of a list: %w", err)
	}
	return p, nil
}

var errNoNewCursor = errors.New("the list is not complete: the platform says that more rows follow, but returns no new cursor")

// pages gets all pages, and writes each one before it gets the next. JSON and YAML are one document of the form of a page. A jq filter
// runs on each page.
func (c *call) pages(ctx context.Context, s *profile.Session, request holdfast.Request) error {
	if !request.Query.Has("limit") {
		request.Query.Set("limit", "100")
	}
	w := &rows{call: c}
	err := eachPage(ctx, s, request, func(response []byte, p page) (bool, error) {
		return true, w.page(ctx, response, p.Data)
	}, c.options()...)
	if err != nil {
		return err
	}
	return w.end()
}

// eachPage gets the pages of a list until it ends, or until visit returns false. A list that does not go on ends with an error.
func eachPage(ctx context.Context, s *profile.Session, request holdfast.Request, visit func(response []byte, p page) (bool, error), options ...holdfast.Option) error {
	for {
		response, err := s.Do(ctx, request, options...)
		if err != nil {
			return err
		}
		p, err := readPage(response)
		if err != nil {
			return err
		}
		if more, err := visit(response, p); err != nil || !more || !p.HasMore {
			return err
		}
		if p.NextCursor == "" || p.NextCursor == request.Query.Get("cursor") {
			return errNoNewCursor
		}
		request.Query.Set("cursor", p.NextCursor)
	}
}

// csv writes a list as CSV as it arrives.
func (c *call) csv(ctx context.Context, s *profile.Session, request holdfast.Request) error {
	d, err := s.Open(ctx, request, c.options()...)
	if err != nil {
		return err
	}
	return errors.Join(incomplete(c.app.Out.Copy(d)), d.Close())
}

// incomplete adds to an error of a transfer that the output cannot be used.
func incomplete(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the transfer failed, so the output is not complete: %w", err)
}

// document writes a document to a file, or to standard output unless that is a terminal.
func (c *call) document(ctx context.Context, s *profile.Session, request holdfast.Request) error {
	text := strings.HasPrefix(c.op.MediaType, "text/")
	if c.app.Out.Terminal && c.file == "-" && !text {
		return usagef("the response is %s, which a terminal cannot show: pass --file FILE, or redirect the output", c.op.MediaType)
	}
	d, err := s.Open(ctx, request, c.options()...)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if d.NotModified {
		c.app.note("Your copy is current.")
		return nil
	}
	if c.file == "-" || c.file == "" && (!c.app.Out.Terminal || text) {
		return incomplete(c.app.Out.Copy(d))
	}
	name := c.file
	if name == "" { // never outside of the working folder, and never over another file
		name = filepath.Base(filepath.Clean("/" + cmp.Or(d.FileName, "document")))
		if _, err := os.Lstat(name); err == nil {
			return usagef("the file %s exists already: pass --file FILE", name)
		}
	}
	if err := save(name, d); err != nil {
		return err
	}
	c.app.note("Written to %s", name)
	return nil
}

// save writes a document to a file. After an error, there is no file.
func save(name string, from io.Reader) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".holdfast-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err = errors.Join(incomplete(err), f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
