package main

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
	"strings"

	"holdfast.dev/sdks/generate/model"
)

// golang returns the files of the Go SDK: the methods, the error codes, the event types and the version.
func golang(m *model.Model, version string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, write := range map[string]func(*goFile){
		"resources.gen.go": func(f *goFile) { f.resources(m) },
		"errors.gen.go":    func(f *goFile) { f.errors(m) },
		"events.gen.go":    func(f *goFile) { f.events(m) },
		"version.gen.go":   func(f *goFile) { f.printf("// Version is the version of the SDK.\nconst Version = %q\n", version) },
	} {
		f := &goFile{}
		write(f)
		text, err := f.format()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = text
	}
	return files, nil
}

// goFile is a file of the package holdfast.
type goFile struct{ text bytes.Buffer }

func (f *goFile) printf(text string, args ...any) { fmt.Fprintf(&f.text, text, args...) }

// goImports are the packages that generated code can use, in order, each with the name that it uses.
var goImports = [][2]string{{"context", "context.Context"}, {"iter", "iter.Seq2"}, {"time", "time.Time"}}

// format returns the file with its imports.
func (f *goFile) format() ([]byte, error) {
	var all bytes.Buffer
	all.WriteString("// Code generated from the contract by make gen. DO NOT EDIT.\n\npackage holdfast\n\nimport (\n")
	for _, p := range goImports {
		if bytes.Contains(f.text.Bytes(), []byte(p[1])) {
			fmt.Fprintf(&all, "%q\n", p[0])
		}
	}
	all.WriteString(")\n\n")
	all.Write(f.text.Bytes())
	return format.Source(bytes.Replace(all.Bytes(), []byte("import (\n)\n"), nil, 1))
}

// goInitialisms are the words that Go writes in capitals, as the generator of the types does.
var goInitialisms = []string{"api", "csv", "id", "json", "pdf", "ttl", "url"}

// goName returns a name as an exported Go name: PaymentIntentID.
func goName(name model.Name) string {
	var text strings.Builder
	for _, word := range name {
		switch {
		case word == "ids":
			text.WriteString("IDs")
		case slices.Contains(goInitialisms, word):
			text.WriteString(strings.ToUpper(word))
		default:
			text.WriteString(model.Name{word}.Pascal())
		}
	}
	return text.String()
}

// goType returns the Go type of a component schema.
func goType(schema string) string {
	if schema == "WebhookEvent" {
		return "Event"
	}
	return goName(model.Split(schema))
}

// goEnum returns the Go type of an enumeration. Requests and responses have the same type.
func goEnum(schema string) string { return goType(strings.TrimSuffix(schema, "Input")) }

// goArgument returns the name of an argument for a parameter of the path: id, deliveryID.
func goArgument(p model.Param) string {
	name := goName(model.Split(p.Name))
	if name == strings.ToUpper(name) {
		return strings.ToLower(name)
	}
	return strings.ToLower(name[:1]) + name[1:]
}

// resources writes the resources and their methods.
func (f *goFile) resources(m *model.Model) {
	f.printf("// Resources are the resources of the API.\ntype Resources struct {\n")
	for _, res := range m.Resources {
		f.printf("%s *%sAPI\n", goName(res.Name), goName(res.Name))
	}
	f.printf("}\n\nfunc newResources(c *Client) Resources {\nreturn Resources{\n")
	for _, res := range m.Resources {
		f.printf("%s: &%sAPI{c},\n", goName(res.Name), goName(res.Name))
	}
	f.printf("}\n}\n\n")
	for _, res := range m.Resources {
		f.comment("%sAPI has the operations on %s.", goName(res.Name), resourceText(res.Name))
		f.printf("type %sAPI struct{ c *Client }\n\n", goName(res.Name))
		for _, op := range res.Operations {
			f.operation(res, op)
		}
	}
}

// resourceText returns the name of a resource in a sentence.
func resourceText(name model.Name) string {
	switch name.Snake() {
	case "me":
		return "the credential that you use"
	case "tenant", "test_clock":
		return "the " + name.String()
	}
	return name.String()
}

// comment writes text as a comment, wrapped at 120 columns.
func (f *goFile) comment(text string, args ...any) {
	for i, paragraph := range strings.Split(strings.TrimSpace(fmt.Sprintf(text, args...)), "\n\n") {
		if i > 0 {
			f.printf("//\n")
		}
		line := "//"
		for _, word := range strings.Fields(paragraph) {
			if len(line)+1+len(word) > 120 {
				f.printf("%s\n", line)
				line = "//"
			}
			line += " " + word
		}
		f.printf("%s\n", line)
	}
}

// goMethod is the method of an operation.
type goMethod struct {
	res    model.Resource
	op     model.Operation
	name   string
	params string // type of the parameters, or ""
}

// operation writes the methods of an operation and the type of its parameters.
func (f *goFile) operation(res model.Resource, op model.Operation) {
	m := goMethod{res: res, op: op, name: goName(op.Name)}
	if len(op.QueryParams)+len(op.HeaderParams) > 0 {
		m.params = goName(res.Name) + m.name + "Params"
		f.params(m)
	}
	f.describe(m)
	switch op.Kind {
	case model.Page:
		f.list(m)
	case model.Stream:
		f.method(m, m.name, "iter.Seq2[Event, error]", "stream", "params, ")
	case model.Raw:
		f.method(m, m.name, "(*Document, error)", "document", "")
	default:
		f.plain(m)
	}
}

// plain writes the method of an operation whose response is one JSON document, or nothing.
func (f *goFile) plain(m goMethod) {
	switch {
	case m.op.Response == "":
		f.method(m, m.name, "error", "none", "")
	case m.op.Item != "":
		item := goType(m.op.Item)
		f.method(m, m.name, "(*Page["+item+"], error)", "one[Page["+item+"]]", "")
	case m.op.Response == "WebhookEvent":
		f.method(m, m.name, "(Event, error)", "event", "")
	default:
		response := goType(m.op.Response)
		f.method(m, m.name, "(*"+response+", error)", "one["+response+"]", "")
	}
}

// list writes the iterator over all rows and the method for one page.
func (f *goFile) list(m goMethod) {
	item := goType(m.op.Item)
	f.printf("func (a *%sAPI) %s(%s) iter.Seq2[%s, error] {\n", goName(m.res.Name), m.name, m.arguments(), item)
	f.printf("return all(func(cursor string) (*Page[%s], error) {\nif cursor != \"\" {\nparams.Cursor = cursor\n}\n", item)
	f.printf("return a.%sPage(%s)\n})\n}\n\n", m.name, m.passed())
	f.comment("%sPage gets one page. The NextCursor of a page is the Cursor of the next one.", m.name)
	f.method(m, m.name+"Page", "(*Page["+item+"], error)", "one[Page["+item+"]]", "")
}

// arguments returns the arguments of the method with their types.
func (m goMethod) arguments() string {
	args := []string{"ctx context.Context"}
	for _, p := range m.op.PathParams {
		args = append(args, goArgument(p)+" string")
	}
	if m.op.Request != "" {
		args = append(args, "body "+goType(m.op.Request))
	}
	if m.params != "" {
		args = append(args, "params "+m.params)
	}
	return strings.Join(append(args, "options ...Option"), ", ")
}

// passed returns the arguments of the method as it passes them on.
func (m goMethod) passed() string {
	args := []string{"ctx"}
	for _, p := range m.op.PathParams {
		args = append(args, goArgument(p))
	}
	return strings.Join(append(args, "params", "options..."), ", ")
}

// method writes a method that calls a function of the runtime.
func (f *goFile) method(m goMethod, name, result, function, further string) {
	f.printf("func (a *%sAPI) %s(%s) %s {\n", goName(m.res.Name), name, m.arguments(), result)
	f.printf("return %s(ctx, a.c, call{method: %q, path: %q", function, m.op.Method, m.op.Path)
	if len(m.op.PathParams) > 0 {
		var ids []string
		for _, p := range m.op.PathParams {
			ids = append(ids, goArgument(p))
		}
		f.printf(", ids: []string{%s}", strings.Join(ids, ", "))
	}
	if m.params != "" {
		f.printf(", params: params")
	}
	if m.op.Request != "" {
		f.printf(", body: body")
	}
	if m.op.Idempotent {
		f.printf(", key: true")
	}
	if m.op.Strict {
		f.printf(", strict: true")
	}
	if m.op.Kind == model.Raw {
		f.printf(", accept: %q", m.op.MediaType)
	}
	f.printf("}, %soptions)\n}\n\n", further)
}

// general are the codes that each request can return. Comments do not repeat them.
var general = []string{
	"malformed_json", "malformed_request", "missing_content_type", "query_api_key_unsupported", "missing_credential", "invalid_credential",
	"revoked_credential", "expired_credential", "insufficient_scope", "mode_mismatch", "request_too_large", "invalid_request", "rate_limited",
	"internal_error", "unavailable", "upstream_timeout", "invalid_cursor", "idempotency_in_progress", "idempotency_mismatch",
}

// describe writes the comment of a method.
func (f *goFile) describe(m goMethod) {
	text := goText(m.op.Description)
	if rows, ok := strings.CutPrefix(text, "Returns a page of "); ok && m.op.Kind == model.Page {
		text = "Iterates over " + rows
	}
	f.comment("%s %s", m.name, strings.ToLower(text[:1])+text[1:])
	if m.op.Kind == model.Page {
		f.printf("//\n")
		f.comment("The iteration gets a page when it needs its first row, and ends after an error.")
	}
	if m.op.Kind == model.Stream {
		f.printf("//\n")
		f.comment("When a response ends or the connection fails, the iteration continues with the next event. It ends with an error if ctx ends or the API refuses the request.")
	}
	var notes []string
	switch len(m.op.Scopes) {
	case 0:
	case 1:
		notes = append(notes, "Requires the scope "+m.op.Scopes[0]+".")
	default:
		notes = append(notes, "Requires the scopes "+strings.Join(m.op.Scopes, ", ")+".")
	}
	var own []string
	for _, code := range m.op.ErrorCodes {
		if !slices.Contains(general, code) {
			own = append(own, "["+goError(code)+"]")
		}
	}
	if len(own) > 0 {
		notes = append(notes, "Errors: "+strings.Join(own, ", ")+".")
	}
	if len(notes) > 0 {
		f.printf("//\n")
		f.comment("%s", strings.Join(notes, " "))
	}
}

// goText returns Markdown as the text of a comment. Links keep their text.
func goText(markdown string) string {
	var text strings.Builder
	for {
		before, rest, ok := strings.Cut(markdown, "](")
		open := strings.LastIndex(before, "[")
		if !ok || open < 0 {
			text.WriteString(markdown)
			return text.String()
		}
		text.WriteString(before[:open] + before[open+1:])
		_, markdown, _ = strings.Cut(rest, ")")
	}
}

// params writes the type of the parameters of an operation.
func (f *goFile) params(m goMethod) {
	f.comment("%s are the parameters of %s. Parameters without a value are not sent.", m.params, m.name)
	f.printf("type %s struct {\n", m.params)
	all := slices.Concat(m.op.QueryParams, m.op.HeaderParams)
	for _, p := range all {
		f.comment("%s", goText(p.Description))
		f.printf("%s %s\n", goName(model.Split(p.Name)), goParam(p))
	}
	f.printf("}\n\nfunc (p %s) encode(q *query) {\n", m.params)
	for _, p := range m.op.QueryParams {
		f.encode(p)
	}
	for _, p := range m.op.HeaderParams {
		f.printf("q.head(%q, p.%s)\n", p.Name, goName(model.Split(p.Name)))
	}
	f.printf("}\n\n")
}

// encode writes the statement that adds a parameter to the query.
func (f *goFile) encode(p model.Param) {
	field := "p." + goName(model.Split(p.Name))
	switch {
	case p.Array:
		f.printf("join(q, %q, %s)\n", p.Name, field)
	case p.Map:
		f.printf("q.pairs(%q, %s)\n", p.Name, field)
	case p.Type == "integer":
		f.printf("q.number(%q, %s)\n", p.Name, field)
	case p.Type == "boolean":
		f.printf("q.flag(%q, %s)\n", p.Name, field)
	case p.Format == "date-time":
		f.printf("q.time(%q, %s)\n", p.Name, field)
	case p.Schema != "":
		f.printf("q.text(%q, string(%s))\n", p.Name, field)
	default:
		f.printf("q.text(%q, %s)\n", p.Name, field)
	}
}

// goParam returns the type of a parameter. Its zero value means that the parameter is not sent.
func goParam(p model.Param) string {
	single := "string"
	switch {
	case p.Schema != "":
		single = goEnum(p.Schema)
	case p.Type == "integer":
		single = "int"
	case p.Type == "boolean":
		single = "*bool"
	case p.Format == "date-time":
		single = "time.Time"
	}
	switch {
	case p.Array:
		return "[]" + single
	case p.Map:
		return "map[string]" + single
	}
	return single
}

// goError returns the name of an error code: ErrSlotUnavailable.
func goError(code string) string { return "Err" + goName(model.Split(code)) }

// errors writes the codes.
func (f *goFile) errors(m *model.Model) {
	f.printf("// The codes of the errors that the API returns.\nconst (\n")
	for _, e := range m.Errors {
		f.comment("%s (%d): %s %s", goError(e.Code), e.Status, goText(e.Cause), goText(e.Remedy))
		f.printf("%s ErrorCode = %q\n\n", goError(e.Code), e.Code)
	}
	f.printf(")\n")
}

// events writes the event types.
func (f *goFile) events(m *model.Model) {
	f.printf("// newEvent returns an empty event of a type, or nil if the type is not known.\nfunc newEvent(eventType string) Event {\nswitch eventType {\n")
	for _, e := range m.Events {
		f.printf("case %q:\nreturn &%s{}\n", e.Type, goType(e.Schema))
	}
	f.printf("}\nreturn nil\n}\n\n")
	for _, e := range m.Events {
		name := goType(e.Schema)
		f.printf("// EventID returns the ID of the event.\nfunc (e *%s) EventID() string { return e.ID }\n\n", name)
		f.printf("// EventType returns %s.\nfunc (e *%s) EventType() string { return e.Type }\n\n", e.Type, name)
		f.printf("// EventTime returns the time of the change.\nfunc (e *%s) EventTime() time.Time { return e.CreatedAt }\n\n", name)
	}
}
