package contract

import "strings"

// isParam reports whether a segment is a parameter. A suffix, as in {token}.ics, is not matched: the operation receives the whole
// segment.
func isParam(seg string) bool { return strings.HasPrefix(seg, "{") && strings.Contains(seg, "}") }

// paramName returns the name of a parameter.
func paramName(seg string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(seg, "{"), "}")
	return name
}

// route identifies an operation's method and path, regardless of the names of its parameters. The router cannot distinguish two
// operations with the same route.
func (op *Operation) route() string {
	segments := strings.Split(op.Path, "/")
	for i, seg := range segments {
		if isParam(seg) {
			segments[i] = "{}"
		}
	}
	return op.Method + " " + strings.Join(segments, "/")
}
