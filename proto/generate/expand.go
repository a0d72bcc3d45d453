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
	if err := requireProperties(get(doc, "components", "schemas")); err != nil {
		return nil, err
	}
	for path, item := range pairs(get(doc, "paths")) {
		for method, node := range pairs(item) {
			op := operation{doc: doc, node: node, id: text(node, "operationId"), method: strings.ToUpper(method), path: path}
			if err := op.expand(examples); err != nil {
				return nil, fmt.Errorf("%s: %w", op.id, err)
			}
			delete(examples, op.id)
		}
	}
	if flow := get(doc, "components", "securitySchemes", "oauth", "flows", "authorizationCode"); flow != nil {
		set(flow, "scopes", scopesOf(doc))
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
	if columns := get(op.node, "x-csv"); columns != nil {
		media := mapping()
		set(media, "schema", mappingOf("type", "string"))
		set(media, "x-columns", columns)
		set(get(response, "content"), csvType, media)
	}
	set(op.node, "security", op.security())
	e, ok := examples[op.id]
	if !ok {
		return nil
	}
	return op.addExample(e, response)
}

func (op operation) success() (status string, response *yaml.Node) {
	for status, response := range pairs(get(op.node, "responses")) {
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
	if list := get(op.node, "parameters"); list != nil {
		for _, p := range list.Content {
			names = append(names, referred(p))
		}
	}
	return names
}

// addHeaders adds the headers of the response before its content.
func (op operation) addHeaders(status string, response *yaml.Node) {
	headers := mapping()
	add := func(name, component string) { set(headers, name, reference("headers", component)) }
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
	schema := referred(get(response, "content", "application/json", "schema"))
	if get(op.doc, "components", "schemas", schema, "properties", "version") != nil {
		add("ETag", "ETag")
	}
	if op.hasParameter("IdempotencyKey") {
		add("Idempotent-Replayed", "IdempotentReplayed")
		add("X-Ignored-Fields", "IgnoredFields")
		add("Preference-Applied", "PreferenceApplied")
	}
	content := get(response, "content")
	remove(response, "content")
	set(response, "headers", headers)
	if content != nil {
		set(response, "content", content)
	}
}

// public reports whether the operation needs no credential.
func (op operation) public() bool { return text(op.node, "x-public") == "true" }

// addPublicHeaders adds the headers of a response without a credential, which therefore has no scopes and no rate limit.
func (op operation) addPublicHeaders(response, headers *yaml.Node) {
	nodes := []*yaml.Node{response}
	if unchanged := get(op.node, "responses", "304"); unchanged != nil {
		set(headers, "ETag", reference("headers", "ContentETag"))
		nodes = append(nodes, unchanged)
	}
	for _, a := range nodes {
		content := get(a, "content")
		remove(a, "content")
		set(a, "headers", headers)
		if content != nil {
			set(a, "content", content)
		}
	}
}

// security lists the scopes where tools and readers expect them.
func (op operation) security() *yaml.Node {
	scopes := get(op.node, "x-required-scopes")
	if op.public() {
		return &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	}
	either := &yaml.Node{Kind: yaml.SequenceNode}
	for _, scheme := range []string{"bearer", "oauth"} {
		either.Content = append(either.Content, &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: []*yaml.Node{scalar(scheme), scopes}})
	}
	return either
}

// scopesOf lists every scope that an operation needs, with a description.
func scopesOf(doc *yaml.Node) *yaml.Node {
	allows := map[string]string{}
	for _, item := range pairs(get(doc, "paths")) {
		for _, op := range pairs(item) {
			scopes := get(op, "x-required-scopes")
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
	all := mapping()
	for _, scope := range slices.Sorted(maps.Keys(allows)) {
		set(all, scope, scalar(allows[scope]))
	}
	return all
}

// responses are the components that describe errors, by status.
var responses = map[int]string{
	400: "BadRequest", 401: "Unauthenticated", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 412: "PreconditionFailed",
	413: "TooLarge", 422: "Invalid", 429: "RateLimited", 500: "ServerError", 502: "GatewayFailed", 503: "Unavailable", 504: "Timeout",
}

// addErrors completes x-error-codes, adds a response for each status of these codes, and lists the codes in the
// description.
func (op operation) addErrors() error {
	codes, err := op.codes()
	if err != nil {
		return err
	}
	var names []string
	nodes := get(op.node, "responses")
	for _, c := range codes { // codes are in the order of their statuses
		names = append(names, c.Code)
		set(nodes, strconv.Itoa(c.Status), reference("responses", responses[c.Status]))
	}
	set(op.node, "x-error-codes", list(names))
	description := get(op.node, "description")
	if description == nil {
		return errors.New("it has no description")
	}
	description.SetString(description.Value + "\n\n" + errorList(codes))
	return nil
}

// general are the codes that do not depend on the resource: every request can return them.
var general = []string{
	"malformed_json", "malformed_request", "missing_content_type", "query_api_key_unsupported", "missing_credential", "invalid_credential",
	"revoked_credential", "expired_credential", "request_too_large", "invalid_request", "rate_limited", "internal_error", "unavailable", "upstream_timeout",
}

// errorList lists the codes in Markdown: the operation's codes with their causes, then the general ones.
func errorList(codes []proto.ErrorCode) string {
	var own, others strings.Builder
	status := 0
	for _, c := range codes {
		link := fmt.Sprintf("[`%s`](%s#%s)", c.Code, proto.ErrorsPage, c.Code)
		switch {
		case !slices.Contains(general, c.Code):
			fmt.Fprintf(&own, "- %d %s: %s\n", c.Status, link, c.Cause)
		case c.Status == status:
			fmt.Fprintf(&others, ", %s", link)
		default:
			fmt.Fprintf(&others, "; %d %s", c.Status, link)
			status = c.Status
		}
	}
	return proto.ErrorsHead + own.String() + "- For all requests: " + strings.TrimPrefix(others.String(), "; ") + "."
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
		has = append(has, "missing_credential", "invalid_credential", "revoked_credential", "expired_credential", "insufficient_scope")
	}
	for _, p := range op.parameters() {
		code := notFoundCode(p)
		switch {
		case slices.ContainsFunc(proto.ErrorCodes, func(c proto.ErrorCode) bool { return c.Code == code }):
			if has = append(has, code); !op.public() {
				has = append(has, "mode_mismatch")
			}
		case text(get(op.doc, "components", "parameters", p), "in") == "path":
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
	if get(op.node, "requestBody") != nil {
		has = append(has, "malformed_json", "missing_content_type")
	}
	if own := get(op.node, "x-error-codes"); own != nil {
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
