package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	"holdfast.dev/proto/view"
	"holdfast.dev/proto/yamlnode"
)

// resources are the first segments of paths that belong to the resource of another segment.
var resources = map[string]string{"calendar": "calendar-feeds"}

// names are the names of operations whose operationId does not have the name of the resource, or has no other words.
var names = map[string]Name{
	"getCalendar":         {"get", "calendar"},
	"rotateWebhookSecret": {"rotate", "secret"},
}

// Read returns the model of the contract.
func Read() (*Model, error) {
	documents, err := view.New(proto.OpenAPI, "")
	if err != nil {
		return nil, err
	}
	return read(documents.SDK, documents.Contract)
}

// read returns the model of the SDK view. The lists that can be downloaded as CSV are marked only in the whole contract.
func read(sdk, contract *yaml.Node) (*Model, error) {
	r := reader{doc: sdk, contract: contract, model: &Model{}}
	for path, item := range yamlnode.Pairs(yamlnode.Get(sdk, "paths")) {
		for method, node := range yamlnode.Pairs(item) {
			if err := r.operation(path, method, node); err != nil {
				return nil, fmt.Errorf("%s %s: %w", strings.ToUpper(method), path, err)
			}
		}
	}
	for i := range r.model.Resources {
		r.describe(&r.model.Resources[i])
	}
	r.errors()
	r.events()
	r.model.Scopes = proto.Scopes
	return r.model, nil
}

type reader struct {
	doc, contract *yaml.Node
	model         *Model
}

// resource returns the resource of a path.
func (r *reader) resource(path string) *Resource {
	segment, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if other := resources[segment]; other != "" {
		segment = other
	}
	name := Split(segment)
	i := slices.IndexFunc(r.model.Resources, func(res Resource) bool { return slices.Equal(res.Name, name) })
	if i < 0 {
		i = len(r.model.Resources)
		r.model.Resources = append(r.model.Resources, Resource{Name: name})
	}
	return &r.model.Resources[i]
}

// operation adds an operation to its resource.
func (r *reader) operation(path, method string, node *yaml.Node) error {
	res := r.resource(path)
	op := Operation{
		ID: yamlnode.Text(node, "operationId"), Method: strings.ToUpper(method), Path: path,
		Summary: yamlnode.Text(node, "summary"), Description: strings.TrimSpace(yamlnode.Text(node, "description")),
		Public: yamlnode.Text(node, "x-public") == "true",
		Scopes: texts(yamlnode.Get(node, "x-required-scopes")), ErrorCodes: texts(yamlnode.Get(node, "x-error-codes")),
	}
	if op.Name = names[op.ID]; op.Name == nil {
		op.Name = Split(op.ID).without(res.Name)
	}
	if err := r.parameters(&op, node); err != nil {
		return err
	}
	r.request(&op, node)
	if err := r.example(&op, yamlnode.Get(r.contract, "paths", path, method)); err != nil {
		return err
	}
	if err := r.response(&op, node); err != nil {
		return err
	}
	if len(op.Name) == 0 {
		return fmt.Errorf("the operation %s has no name besides its resource: name it in this package", op.ID)
	}
	if slices.ContainsFunc(res.Operations, func(other Operation) bool { return slices.Equal(other.Name, op.Name) }) {
		return fmt.Errorf("the resource %s has two operations %s: name one of them in this package", res.Name, op.Name)
	}
	res.Operations = append(res.Operations, op)
	if csv(yamlnode.Get(r.contract, "paths", path, method)) {
		res.Operations = append(res.Operations, asCSV(op))
	}
	return nil
}

// csv reports whether a list of the whole contract can be downloaded as CSV.
func csv(node *yaml.Node) bool {
	return yamlnode.Get(node, "responses", "200", "content", "text/csv") != nil
}

// asCSV returns the operation that downloads a list.
func asCSV(list Operation) Operation {
	op := list
	op.ID, op.Name = list.ID+"Csv", append(slices.Clone(list.Name), "csv")
	op.Kind, op.MediaType, op.Response, op.Item, op.Columns = Raw, "text/csv", "", "", nil
	op.QueryParams = slices.DeleteFunc(slices.Clone(list.QueryParams), func(p Param) bool { return p.Name == "limit" || p.Name == "cursor" })
	op.Summary = list.Summary + " as CSV"
	op.Description = "Returns all matching rows in one document (RFC 4180, UTF-8), at most 100,000. If the transfer fails, discard what you received."
	return op
}

// parameters adds the parameters of an operation.
func (r *reader) parameters(op *Operation, node *yaml.Node) error {
	list := yamlnode.Get(node, "parameters")
	if list == nil {
		return nil
	}
	for _, item := range list.Content {
		if name := yamlnode.Referred(item); name != "" {
			item = yamlnode.Get(r.doc, "components", "parameters", name)
		}
		p, err := r.param(item)
		if err != nil {
			return err
		}
		switch in := yamlnode.Text(item, "in"); {
		case p.Name == "Idempotency-Key":
			op.Idempotent = true
		case p.Name == "Prefer":
			op.Strict = true
		case p.Name == "If-Match":
			op.Conditional = true
		case in == "header":
			op.HeaderParams = append(op.HeaderParams, p)
		case in == "path":
			op.PathParams = append(op.PathParams, p)
		default:
			op.QueryParams = append(op.QueryParams, p)
		}
	}
	return nil
}

// param returns a parameter.
func (r *reader) param(node *yaml.Node) (Param, error) {
	p := Param{
		Name: yamlnode.Text(node, "name"), Description: strings.TrimSpace(yamlnode.Text(node, "description")),
		Required: yamlnode.Text(node, "required") == "true",
	}
	if example := yamlnode.Get(node, "example"); example != nil {
		if err := example.Decode(&p.Example); err != nil {
			return p, fmt.Errorf("example of %s: %w", p.Name, err)
		}
	}
	schema := yamlnode.Get(node, "schema")
	switch yamlnode.Text(schema, "type") {
	case "array":
		p.Array = true
		schema = yamlnode.Get(schema, "items")
	case "object":
		p.Map = true
		schema = yamlnode.Get(schema, "additionalProperties")
	}
	if p.Schema = yamlnode.Referred(schema); p.Schema != "" {
		schema = yamlnode.Get(r.doc, "components", "schemas", p.Schema)
		p.Values = texts(yamlnode.Get(schema, "enum"))
	}
	p.Type, p.Format = yamlnode.Text(schema, "type"), yamlnode.Text(schema, "format")
	if p.Type != "string" && p.Type != "integer" && p.Type != "boolean" {
		return p, fmt.Errorf("the parameter %s has the type %q", p.Name, p.Type)
	}
	return p, nil
}

// request adds the body of an operation. A schema without properties is no body.
func (r *reader) request(op *Operation, node *yaml.Node) {
	body := yamlnode.Get(node, "requestBody")
	name := yamlnode.Referred(yamlnode.Get(body, "content", "application/json", "schema"))
	if yamlnode.Get(r.doc, "components", "schemas", name, "properties") == nil {
		return
	}
	op.Request, op.RequestRequired = name, yamlnode.Text(body, "required") == "true"
	op.Fields = r.fields(name, "", true)
}

// example adds the example of the body, which only the whole contract has.
func (r *reader) example(op *Operation, node *yaml.Node) error {
	example := yamlnode.Get(node, "requestBody", "content", "application/json", "example")
	if op.Request == "" || example == nil {
		return nil
	}
	document, err := view.JSON(example)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, document, "", "  "); err != nil {
		return fmt.Errorf("example of %s: %w", op.ID, err)
	}
	op.RequestExample = text.String()
	return nil
}

// response adds the response of an operation.
func (r *reader) response(op *Operation, node *yaml.Node) error {
	for status, response := range yamlnode.Pairs(yamlnode.Get(node, "responses")) {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		for media, content := range yamlnode.Pairs(yamlnode.Get(response, "content")) {
			if op.MediaType != "" {
				return fmt.Errorf("the operation has the media types %s and %s", op.MediaType, media)
			}
			op.MediaType, _, _ = strings.Cut(media, ";")
			op.Response = yamlnode.Referred(yamlnode.Get(content, "schema"))
		}
	}
	switch op.MediaType {
	case "", "application/json":
	case "text/event-stream":
		op.Kind, op.Item = Stream, "WebhookEvent"
		return nil
	default:
		op.Kind = Raw
		return nil
	}
	op.Item = yamlnode.Referred(yamlnode.Get(r.doc, "components", "schemas", op.Response, "properties", "data", "items"))
	if slices.ContainsFunc(op.QueryParams, func(p Param) bool { return p.Name == "cursor" }) {
		op.Kind = Page
		if op.Item == "" {
			return fmt.Errorf("the schema %s is not a list", op.Response)
		}
	}
	if op.Item != "" {
		op.Columns = r.columns(op.Item)
		r.object(op.Item)
	}
	return nil
}

// describe adds the object of a resource: what its operation get returns, or else list.
func (r *reader) describe(res *Resource) {
	for _, op := range res.Operations {
		switch op.Name.Snake() {
		case "get":
			res.Object = op.Response
		case "list":
			if res.Object == "" {
				res.Object = op.Item
			}
		}
	}
	schema := yamlnode.Get(r.doc, "components", "schemas", res.Object)
	res.Description = strings.TrimSpace(yamlnode.Text(schema, "description"))
}

// errors adds the codes that an operation returns.
func (r *reader) errors() {
	returned := map[string]bool{}
	for _, res := range r.model.Resources {
		for _, op := range res.Operations {
			for _, code := range op.ErrorCodes {
				returned[code] = true
			}
		}
	}
	for _, e := range proto.ErrorCodes {
		if returned[e.Code] {
			r.model.Errors = append(r.model.Errors, ErrorCode(e))
		}
	}
}

// events adds the event types.
func (r *reader) events() {
	mapping := yamlnode.Get(r.doc, "components", "schemas", "WebhookEvent", "discriminator", "mapping")
	for _, t := range proto.EventTypes {
		schema := yamlnode.Text(mapping, t.Name)
		schema = schema[strings.LastIndex(schema, "/")+1:]
		data := yamlnode.Referred(yamlnode.Get(r.doc, "components", "schemas", schema, "properties", "data"))
		object := yamlnode.Referred(yamlnode.Get(r.doc, "components", "schemas", data, "properties", "object"))
		r.model.Events = append(r.model.Events, Event{Type: t.Name, Schema: schema, Object: object, Description: t.Description, Scope: t.Scope})
	}
}

func texts(list *yaml.Node) []string {
	if list == nil {
		return nil
	}
	var all []string
	for _, item := range list.Content {
		all = append(all, item.Value)
	}
	return all
}
