package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	"holdfast.dev/proto/yamlnode"
)

const firstLine = "# Code generated from openapi.yaml and examples/ by make gen. DO NOT EDIT.\n"

// expand returns the whole document. openapi.yaml omits what can be derived from an operation's method, parameters and response:
// the headers of its response, its errors and their codes. The comment at the top of openapi.yaml states the rules.
func expand(source []byte, examples map[string]example) ([]byte, error) {
	var top yaml.Node
	if err := yaml.Unmarshal(source, &top); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	doc := top.Content[0]
	doc.Content[0].HeadComment = "" // it describes openapi.yaml only
	expandEventTypes(doc)
	if err := requireProperties(yamlnode.Get(doc, "components", "schemas")); err != nil {
		return nil, err
	}
	for path, item := range yamlnode.Pairs(yamlnode.Get(doc, "paths")) {
		for method, node := range yamlnode.Pairs(item) {
			op := operation{doc: doc, node: node, id: yamlnode.Text(node, "operationId"), method: strings.ToUpper(method), path: path}
			if err := op.expand(examples); err != nil {
				return nil, fmt.Errorf("%s: %w", op.id, err)
			}
			delete(examples, op.id)
		}
	}
	if flow := yamlnode.Get(doc, "components", "securitySchemes", "oauth", "flows", "authorizationCode"); flow != nil {
		yamlnode.Set(flow, "scopes", scopesOf(doc))
	}
	for id := range examples {
		return nil, fmt.Errorf("examples/%s.json: the contract has no such operation", id)
	}
	var out bytes.Buffer
	out.WriteString(firstLine)
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(&top), encoder.Close()); err != nil {
		return nil, fmt.Errorf("write api/openapi.yaml: %w", err)
	}
	return out.Bytes(), nil
}

// csvType is the media type of lists as CSV.
const csvType = "text/csv"

// operation is one of the contract's operations while it is being expanded.
type operation struct {
	doc, node        *yaml.Node
	id, method, path string
}

func (op operation) expand(examples map[string]example) error {
	success, response := op.success()
	if response == nil {
		return errors.New("it has no 2xx response")
	}
	if err := op.addErrors(); err != nil {
		return err
	}
	op.addHeaders(success, response)
	if columns := yamlnode.Get(op.node, "x-csv"); columns != nil {
		media := yamlnode.Mapping()
		yamlnode.Set(media, "schema", yamlnode.MappingOf("type", "string"))
		yamlnode.Set(media, "x-columns", columns)
		yamlnode.Set(yamlnode.Get(response, "content"), csvType, media)
	}
	yamlnode.Set(op.node, "security", op.security())
	e, ok := examples[op.id]
	if !ok {
		return nil
	}
	return op.addExample(e, response)
}

func (op operation) success() (status string, response *yaml.Node) {
	for status, response := range yamlnode.Pairs(yamlnode.Get(op.node, "responses")) {
		if strings.HasPrefix(status, "2") {
			return status, response
		}
	}
	return "", nil
}

// hasParameter reports whether the operation has the given parameter of the components.
func (op operation) hasParameter(parameter string) bool {
	return slices.Contains(op.parameters(), parameter)
}

func (op operation) parameters() []string {
	var names []string
	if list := yamlnode.Get(op.node, "parameters"); list != nil {
		for _, p := range list.Content {
			names = append(names, yamlnode.Referred(p))
		}
	}
	return names
}

// addHeaders adds the headers of the response before its content.
func (op operation) addHeaders(status string, response *yaml.Node) {
	headers := yamlnode.Mapping()
	add := func(name, component string) { yamlnode.Set(headers, name, yamlnode.Reference("headers", component)) }
	add("X-Request-Id", "RequestId")
	if op.public() {
		op.addPublicHeaders(response, headers)
		return
	}
	add("X-Service-Scope", "ServiceScope")
	add("RateLimit-Limit", "RateLimitLimit")
	add("RateLimit-Remaining", "RateLimitRemaining")
	add("RateLimit-Reset", "RateLimitReset")
	add("RateLimit", "RateLimit")
	add("RateLimit-Policy", "RateLimitPolicy")
	if status == "201" {
		add("Location", "Location")
	}
	schema := yamlnode.Referred(yamlnode.Get(response, "content", "application/json", "schema"))
	if yamlnode.Get(op.doc, "components", "schemas", schema, "properties", "version") != nil {
		add("ETag", "ETag")
	}
	if op.hasParameter("IdempotencyKey") {
		add("Idempotent-Replayed", "IdempotentReplayed")
		add("X-Ignored-Fields", "IgnoredFields")
		add("Preference-Applied", "PreferenceApplied")
	}
	content := yamlnode.Get(response, "content")
	yamlnode.Remove(response, "content")
	yamlnode.Set(response, "headers", headers)
	if content != nil {
		yamlnode.Set(response, "content", content)
	}
}

// public reports whether the operation needs no credential.
func (op operation) public() bool { return yamlnode.Text(op.node, "x-public") == "true" }

// addPublicHeaders adds the headers of a response without a credential, which therefore has no scopes and no rate limit.
func (op operation) addPublicHeaders(response, headers *yaml.Node) {
	nodes := []*yaml.Node{response}
	if unchanged := yamlnode.Get(op.node, "responses", "304"); unchanged != nil {
		yamlnode.Set(headers, "ETag", yamlnode.Reference("headers", "ContentETag"))
		nodes = append(nodes, unchanged)
	}
	for _, a := range nodes {
		content := yamlnode.Get(a, "content")
		yamlnode.Remove(a, "content")
		yamlnode.Set(a, "headers", headers)
		if content != nil {
			yamlnode.Set(a, "content", content)
		}
	}
}

// security lists the scopes where tools and readers expect them.
func (op operation) security() *yaml.Node {
	scopes := yamlnode.Get(op.node, "x-required-scopes")
	if op.public() {
		return &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	}
	either := &yaml.Node{Kind: yaml.SequenceNode}
	for _, scheme := range []string{"bearer", "oauth"} {
		either.Content = append(either.Content, &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: []*yaml.Node{yamlnode.Scalar(scheme), scopes}})
	}
	return either
}

// scopesOf lists every scope that an operation needs, with a description.
func scopesOf(doc *yaml.Node) *yaml.Node {
	allows := map[string]string{}
	for _, item := range yamlnode.Pairs(yamlnode.Get(doc, "paths")) {
		for _, op := range yamlnode.Pairs(item) {
			scopes := yamlnode.Get(op, "x-required-scopes")
			if scopes == nil {
				continue
			}
			for _, scope := range scopes.Content {
				first, second, _ := strings.Cut(scope.Value, ":")
				if second == "read" || second == "write" {
					first, second = second, first
				}
				allows[scope.Value] = map[string]string{"read": "Read ", "write": "Create and change "}[first] + second
			}
		}
	}
	all := yamlnode.Mapping()
	for _, scope := range slices.Sorted(maps.Keys(allows)) {
		yamlnode.Set(all, scope, yamlnode.Scalar(allows[scope]))
	}
	return all
}

// responses are the components that describe errors, by status.
var responses = map[int]string{
	400: "BadRequest", 401: "Unauthenticated", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 412: "PreconditionFailed",
	413: "TooLarge", 422: "Invalid", 429: "RateLimited", 500: "ServerError", 502: "GatewayFailed", 503: "Unavailable", 504: "Timeout",
}

// addErrors completes x-error-codes, and adds a response for each status of these codes.
func (op operation) addErrors() error {
	codes, err := op.codes()
	if err != nil {
		return err
	}
	var names []string
	nodes := yamlnode.Get(op.node, "responses")
	for _, c := range codes { // codes are in the order of their statuses
		names = append(names, c.Code)
		yamlnode.Set(nodes, strconv.Itoa(c.Status), yamlnode.Reference("responses", responses[c.Status]))
	}
	yamlnode.Set(op.node, "x-error-codes", yamlnode.List(names))
	if yamlnode.Get(op.node, "description") == nil {
		return errors.New("it has no description")
	}
	return nil
}

// notFound contains the codes for path parameters whose name differs from that of the resource.
var notFound = map[string]string{"EndpointId": "webhook_endpoint_not_found", "CalendarToken": "calendar_feed_not_found"}

var capital = regexp.MustCompile(`[A-Z]`)

// notFoundCode returns the code for an unknown id in a path: holiday_rule_not_found for HolidayRuleId.
func notFoundCode(parameter string) string {
	if code := notFound[parameter]; code != "" {
		return code
	}
	noun := capital.ReplaceAllStringFunc(strings.TrimSuffix(parameter, "Id"), func(s string) string { return "_" + strings.ToLower(s) })
	return strings.TrimPrefix(noun, "_") + "_not_found"
}

// codes returns the operation's own codes and those derived from its parameters and response, in the order of the catalogue.
func (op operation) codes() ([]proto.ErrorCode, error) {
	has := []string{
		"malformed_request", "query_api_key_unsupported", "invalid_request", "rate_limited", "internal_error", "unavailable", "upstream_timeout",
	}
	if !op.public() {
		has = append(has, "missing_credential", "invalid_credential", "revoked_credential", "expired_credential", "insufficient_scope", "tenant_suspended")
	}
	for _, p := range op.parameters() {
		code := notFoundCode(p)
		switch {
		case slices.ContainsFunc(proto.ErrorCodes, func(c proto.ErrorCode) bool { return c.Code == code }):
			if has = append(has, code); !op.public() {
				has = append(has, "mode_mismatch")
			}
		case yamlnode.Text(yamlnode.Get(op.doc, "components", "parameters", p), "in") == "path":
			return nil, fmt.Errorf("the parameter %s has no code: add %s to proto/errorcodes.go", p, code)
		}
	}
	for parameter, codes := range map[string][]string{
		"Cursor":         {"invalid_cursor"},
		"IdempotencyKey": {"idempotency_in_progress", "idempotency_mismatch"},
		"IfMatch":        {"version_mismatch"},
	} {
		if op.hasParameter(parameter) {
			has = append(has, codes...)
		}
	}
	if op.method != "GET" {
		has = append(has, "request_too_large")
	}
	if yamlnode.Get(op.node, "requestBody") != nil {
		has = append(has, "malformed_json", "missing_content_type")
	}
	if own := yamlnode.Get(op.node, "x-error-codes"); own != nil {
		for _, c := range own.Content {
			has = append(has, c.Value)
		}
	}
	var codes []proto.ErrorCode
	for _, c := range proto.ErrorCodes {
		if i := slices.Index(has, c.Code); i >= 0 {
			codes = append(codes, c)
			has = slices.DeleteFunc(has, func(code string) bool { return code == c.Code })
		}
	}
	if len(has) > 0 {
		return nil, fmt.Errorf("x-error-codes names %v, which is not among proto.ErrorCodes", has)
	}
	return codes, nil
}
