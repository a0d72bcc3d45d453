package contracttest

import (
	"slices"
	"strings"

	"holdfast.dev/libs/contract"
)

// Match finds the operation of a method and a path relative to the base ("/customers/cu_…"), with the values of its PathParams.
// When op is nil, allow contains the methods of a known path (405) or is empty (404). It is a plain search, for comparison with the
// router: a literal segment takes precedence over a parameter, a trailing slash makes a different path, and HEAD and OPTIONS match
// only when they are declared. Values are not decoded, so pass the escaped path when ids can contain escapes.
func Match(c *contract.Contract, method, path string) (op *contract.Operation, values, allow []string) {
	best := ""
	for _, o := range c.Operations() {
		literals, found, ok := match(o.Path, path)
		if !ok || literals < best {
			continue
		}
		if literals > best {
			best, op, values, allow = literals, nil, nil, nil
		}
		allow = append(allow, o.Method)
		if o.Method == method {
			op, values = o, found
		}
	}
	slices.Sort(allow)
	return op, values, allow
}

// match compares a path with the path of an operation. If two paths match, the one whose first literal segment is further left has
// the greater literals.
func match(pattern, path string) (literals string, values []string, ok bool) {
	segments, given := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(segments) != len(given) {
		return "", nil, false
	}
	for i, seg := range segments {
		switch {
		case !strings.HasPrefix(seg, "{") && seg == given[i]:
			literals += "1"
		case strings.HasPrefix(seg, "{") && given[i] != "":
			literals += "0"
			values = append(values, given[i])
		default:
			return "", nil, false
		}
	}
	return literals, values, true
}
