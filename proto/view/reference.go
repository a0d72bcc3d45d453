package view

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	"holdfast.dev/proto/yamlnode"
)

// ErrorsHead begins the list of errors at the end of each description in Reference.
const ErrorsHead = "**Errors**\n\n"

// reference adds the errors of each operation to its description, for the page that people read, and offers only credentials that the page
// can use.
func reference(doc *yaml.Node) *yaml.Node {
	withoutMarks(doc)
	withoutFlows(doc)
	for _, op := range operations(doc) {
		declared := yamlnode.Get(op, "x-error-codes")
		description := yamlnode.Get(op, "description")
		if declared == nil || description == nil {
			continue
		}
		var codes []string
		for _, code := range declared.Content {
			codes = append(codes, code.Value)
		}
		description.SetString(strings.TrimSpace(description.Value) + "\n\n" + errorList(codes))
	}
	return doc
}

// withoutFlows removes the schemes that need an app: the page is not an OAuth app, so it cannot get a token. A reader can enter one that they
// have as a bearer token.
func withoutFlows(doc *yaml.Node) {
	schemes, security := yamlnode.Get(doc, "components", "securitySchemes"), yamlnode.Get(doc, "security")
	if schemes == nil || security == nil {
		return
	}
	for name, scheme := range yamlnode.Pairs(yamlnode.Clone(schemes)) {
		if yamlnode.Get(scheme, "flows") == nil {
			description := yamlnode.Text(scheme, "description") + " The access token of an [OAuth app](/docs/oauth) works too."
			yamlnode.Set(yamlnode.Get(schemes, name), "description", yamlnode.Scalar(description))
			continue
		}
		yamlnode.Remove(schemes, name)
		security.Content = slices.DeleteFunc(security.Content, func(n *yaml.Node) bool { return yamlnode.Get(n, name) != nil })
	}
}

// withoutMarks removes the marks that only openEnums reads.
func withoutMarks(doc *yaml.Node) {
	for _, schema := range yamlnode.Pairs(yamlnode.Get(doc, "components", "schemas")) {
		yamlnode.Remove(schema, "x-closed")
	}
}

// general are the codes that do not depend on the resource: every request can return them.
var general = []string{
	"malformed_json", "malformed_request", "missing_content_type", "query_api_key_unsupported", "missing_credential", "invalid_credential",
	"revoked_credential", "expired_credential", "request_too_large", "invalid_request", "rate_limited", "internal_error", "unavailable", "upstream_timeout",
}

// errorList lists codes in Markdown: the operation's codes with their causes, then the general ones. Both are in the order of the
// catalogue.
func errorList(codes []string) string {
	var own, others strings.Builder
	status := 0
	for _, c := range proto.ErrorCodes {
		link := fmt.Sprintf("[`%s`](%s#%s)", c.Code, proto.ErrorsPage, c.Code)
		switch {
		case !slices.Contains(codes, c.Code):
		case !slices.Contains(general, c.Code):
			fmt.Fprintf(&own, "- %d %s: %s\n", c.Status, link, c.Cause)
		case c.Status == status:
			fmt.Fprintf(&others, ", %s", link)
		default:
			fmt.Fprintf(&others, "; %d %s", c.Status, link)
			status = c.Status
		}
	}
	return ErrorsHead + own.String() + "- For all requests: " + strings.TrimPrefix(others.String(), "; ") + "."
}
