package main

import (
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/sdks/generate/model"
)

// pyForm is the synchronous or the asynchronous client.
type pyForm struct {
	module string
	async  bool
}

// prefix returns the name of a class in the form: AsyncBookings.
func (f pyForm) prefix(name string) string {
	if f.async {
		return "Async" + name
	}
	return name
}

func (f pyForm) transport() string {
	if f.async {
		return "AsyncTransport"
	}
	return "SyncTransport"
}

// client emits the resources and the client.
func (f pyForm) client(m *model.Model) *pyWriter {
	w := &pyWriter{}
	kind, raw := "synchronous", "raw"
	if f.async {
		kind, raw = "asynchronous", "async_raw"
	}
	w.line(0, `"""The resources of the %s client."""`, kind)
	w.line(0, "\nfrom __future__ import annotations\n\nfrom collections.abc import Mapping, Sequence\nfrom functools import cached_property")
	w.line(0, "from typing import TYPE_CHECKING, Unpack\n\nfrom . import _operations_gen as ops")
	imports := []string{
		fmt.Sprintf("from .%s import %s", f.module, f.transport()),
		"from ._call import ConditionalOptions, ConditionalWriteOptions, Options, WriteOptions",
		"from ._response import " + raw,
	}
	slices.Sort(imports)
	w.line(0, "%s", strings.Join(imports, "\n"))
	stream := "_stream"
	if f.async {
		stream = "_async_stream"
	}
	w.line(0, "\nif TYPE_CHECKING:\n    from . import types\n    from ._download import %s\n    from ._pages import %s\n    from .%s import %s\n",
		f.prefix("Download"), f.prefix("Pages"), stream, f.prefix("EventStream"))
	for _, res := range m.Resources {
		f.resource(w, res, raw)
	}
	w.line(0, "\nclass %s(%s):", f.prefix("Client"), f.transport())
	w.doc(1, fmt.Sprintf("The %s client of the API.", kind))
	for _, res := range m.Resources {
		w.line(0, "")
		w.line(1, "@cached_property")
		w.line(1, "def %s(self) -> %s:", res.Name.Snake(), f.prefix(res.Name.Pascal()))
		w.doc(2, pyFirstLine(res.Description))
		w.line(2, "return %s(self)", f.prefix(res.Name.Pascal()))
	}
	return w
}

// resource emits the class of a resource, and the class whose methods return the whole response.
func (f pyForm) resource(w *pyWriter, res model.Resource, raw string) {
	class := f.prefix(res.Name.Pascal())
	plain := func(op model.Operation) bool { return op.Kind == model.Plain }
	w.line(0, "\nclass %s:", class)
	w.doc(1, res.Description)
	w.line(0, "")
	w.line(1, "def __init__(self, client: %s) -> None:", f.transport())
	w.line(2, "self._client = client")
	if slices.ContainsFunc(res.Operations, plain) {
		w.line(0, "")
		w.line(1, "@cached_property")
		w.line(1, "def with_raw_response(self) -> %sWithRawResponse:", class)
		w.doc(2, "The methods that return the whole response with its status and headers.")
		w.line(2, "return %sWithRawResponse(self)", class)
	}
	for _, op := range res.Operations {
		f.method(w, op)
	}
	if !slices.ContainsFunc(res.Operations, plain) {
		return
	}
	w.line(0, "\n\nclass %sWithRawResponse:", class)
	w.doc(1, fmt.Sprintf("The methods of %s that return the whole response with its status and headers.", class))
	w.line(0, "")
	w.line(1, "def __init__(self, resource: %s) -> None:", class)
	for _, op := range res.Operations {
		if plain(op) {
			w.line(2, "self.%[1]s = %[2]s(resource.%[1]s)", op.Name.Snake(), raw)
		}
	}
	w.line(0, "")
}

// method emits a method.
func (f pyForm) method(w *pyWriter, op model.Operation) {
	waits := f.async && op.Kind == model.Plain
	define, await := "def", ""
	if waits {
		define, await = "async def", "await "
	}
	w.line(0, "")
	w.line(1, "%s %s(self, %s) -> %s:", define, op.Name.Snake(), strings.Join(pySignature(op), ", "), f.returns(op))
	w.doc(2, pyDoc(op)...)
	call := fmt.Sprintf("%sself._client.%s(%s)", await, pySend[op.Kind], strings.Join(pyArguments(op), ", "))
	if pyResult(op) != "None" {
		call = "return " + call
	}
	w.line(2, "%s", call)
}

// pySend are the methods of the transport by kind.
var pySend = map[model.Kind]string{model.Plain: "_json", model.Page: "_pages", model.Raw: "_download", model.Stream: "_stream"}

// returns returns the type of the result of a method.
func (f pyForm) returns(op model.Operation) string {
	switch op.Kind {
	case model.Page:
		return f.prefix("Pages") + "[" + pyResult(op) + "]"
	case model.Raw:
		return f.prefix("Download")
	case model.Stream:
		return f.prefix("EventStream") + "[" + pyResult(op) + "]"
	default:
		return pyResult(op)
	}
}

// pySignature returns the parameters of a method after self.
func pySignature(op model.Operation) []string {
	var positional, named []string
	for _, p := range op.PathParams {
		positional = append(positional, pyName(p)+": str")
	}
	if op.Request != "" {
		body := "body: " + pyType(op.Request)
		if !op.RequestRequired {
			body += " | None = None"
		}
		positional = append(positional, body)
	}
	for _, p := range pyNamed(op) {
		if p.Required {
			named = append(named, pyName(p)+": "+pyParam(p))
		} else {
			named = append(named, pyName(p)+": "+pyParam(p)+" | None = None")
		}
	}
	if len(named) > 0 {
		positional = append(positional, "*")
	}
	return append(append(positional, named...), "**options: Unpack["+pyOptions(op)+"]")
}

// pyNamed returns the parameters that a caller passes by name: those of the query and of the header.
func pyNamed(op model.Operation) []model.Param {
	named := append(slices.Clone(op.QueryParams), op.HeaderParams...)
	slices.SortStableFunc(named, func(a, b model.Param) int {
		return pyOrder(b.Required) - pyOrder(a.Required)
	})
	return named
}

func pyOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}

func pyOptions(op model.Operation) string {
	switch {
	case op.Idempotent && op.Conditional:
		return "ConditionalWriteOptions"
	case op.Idempotent:
		return "WriteOptions"
	case op.Conditional:
		return "ConditionalOptions"
	default:
		return "Options"
	}
}

// pyReserved are the names of parameters that are keywords of Python or have another meaning in a method.
var pyReserved = []string{"from", "global", "import", "in", "is", "lambda", "class", "def", "self", "body", "options"}

// pyName returns the name of a parameter.
func pyName(p model.Param) string {
	name := strings.ToLower(strings.ReplaceAll(p.Name, "-", "_"))
	if slices.Contains(pyReserved, name) {
		name += "_"
	}
	return name
}

// pyParam returns the type of a parameter.
func pyParam(p model.Param) string {
	kind := map[string]string{"integer": "int", "boolean": "bool"}[p.Type]
	switch {
	case p.Schema != "":
		kind = pyType(p.Schema)
	case kind == "":
		kind = "str"
	}
	switch {
	case p.Map:
		return "Mapping[str, " + kind + "]"
	case p.Array:
		return kind + " | Sequence[" + kind + "]"
	default:
		return kind
	}
}

// pyArguments returns the arguments of the call of the transport.
func pyArguments(op model.Operation) []string {
	path := pyPairs(op.PathParams, pyName)
	query := pyPairs(op.QueryParams, pyName)
	args := []string{"ops." + pyConstant(op), path, "options"}
	switch op.Kind {
	case model.Page:
		return append(args, query)
	case model.Stream:
		return []string{"ops." + pyConstant(op), "options", query, pyName(op.HeaderParams[0])}
	default:
	}
	if len(op.QueryParams) > 0 {
		args = append(args, "query="+query)
	}
	if len(op.HeaderParams) > 0 {
		args = append(args, "headers="+pyPairs(op.HeaderParams, pyName))
	}
	if op.Request != "" {
		args = append(args, "body=body")
	}
	return args
}

// pyPairs returns a dictionary of the parameters.
func pyPairs(params []model.Param, name func(model.Param) string) string {
	items := make([]string, 0, len(params))
	for _, p := range params {
		items = append(items, fmt.Sprintf("%q: %s", p.Name, name(p)))
	}
	return "{" + strings.Join(items, ", ") + "}"
}

// pyDoc returns the paragraphs of the docstring of a method.
func pyDoc(op model.Operation) []string {
	doc := []string{strings.TrimSuffix(op.Summary, ".") + ".", op.Description}
	var args []string
	for _, p := range append(slices.Clone(op.PathParams), pyNamed(op)...) {
		if p.Description != "" {
			args = append(args, fmt.Sprintf("    %s: %s", pyName(p), strings.ReplaceAll(p.Description, "\n", " ")))
		}
	}
	if len(args) > 0 {
		doc = append(doc, "Args:\n"+strings.Join(args, "\n"))
	}
	if len(op.Scopes) > 0 {
		doc = append(doc, "Scopes: "+strings.Join(op.Scopes, ", ")+".")
	}
	if codes := pySpecific(op); codes != "" {
		doc = append(doc, "Errors: "+codes+".")
	}
	return doc
}

// pyEverywhere are the codes that all operations can return.
var pyEverywhere = []string{
	"malformed_json", "malformed_request", "missing_content_type", "query_api_key_unsupported", "expired_credential", "invalid_credential",
	"missing_credential", "revoked_credential", "insufficient_scope", "request_too_large", "rate_limited", "internal_error", "unavailable",
	"upstream_timeout",
}

// pySpecific returns the classes of the errors of an operation, without those of all operations.
func pySpecific(op model.Operation) string {
	var names []string
	for _, code := range op.ErrorCodes {
		if !slices.Contains(pyEverywhere, code) {
			names = append(names, model.Split(code).Pascal())
		}
	}
	return strings.Join(names, ", ")
}

// pyFirstLine returns the first line of a text.
func pyFirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
