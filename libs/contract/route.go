package contract

import (
	"fmt"
	"slices"
	"strings"
)

const maxParams = 3

// Param is one value of a path.
type Param struct{ Name, Value string }

// Params are the values of the parameters in an operation's path; unused elements are zero.
type Params [maxParams]Param

// Get returns the value of a name, "" when the path has no such name.
func (p Params) Get(name string) string {
	for i := range p {
		if p[i].Name == name {
			return p[i].Value
		}
	}
	return ""
}

// route is one segment in the tree of paths. A literal segment comes before a parameter.
type route struct {
	literal map[string]*route
	param   *route
	methods map[string]*Operation
	allow   []string
}

func (r *route) add(op *Operation) error {
	if len(op.PathParams) > maxParams {
		return fmt.Errorf("%s: more than %d path parameters", op.Path, maxParams)
	}
	for seg := range strings.SplitSeq(strings.TrimPrefix(op.Path, "/"), "/") {
		r = r.child(seg)
	}
	if r.methods == nil {
		r.methods = map[string]*Operation{}
	}
	if r.methods[op.Method] != nil {
		return fmt.Errorf("%s %s is given twice", op.Method, op.Path)
	}
	r.methods[op.Method] = op
	r.allow = append(r.allow, op.Method)
	slices.Sort(r.allow)
	return nil
}

func (r *route) child(seg string) *route {
	if isParam(seg) {
		if r.param == nil {
			r.param = &route{}
		}
		return r.param
	}
	if r.literal == nil {
		r.literal = map[string]*route{}
	}
	if r.literal[seg] == nil {
		r.literal[seg] = &route{}
	}
	return r.literal[seg]
}

// isParam reports whether a segment is a parameter. A suffix, as in {token}.ics, is not matched: the operation sees the
// whole segment.
func isParam(seg string) bool { return strings.HasPrefix(seg, "{") && strings.Contains(seg, "}") }

// paramName returns the name of a parameter.
func paramName(seg string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(seg, "{"), "}")
	return name
}

// Match finds the operation of a method and a path relative to the base ("/customers/cu_…"). When op is nil, allow has
// the methods of a known path (405) or is empty (404). A trailing slash makes another path; HEAD and OPTIONS match only
// when they are declared. Params are the segments as given, so pass the escaped path when ids may hold escapes. The
// caller must not change allow.
func (c *Contract) Match(method, path string) (op *Operation, params Params, allow []string) {
	if len(path) < 2 || path[0] != '/' {
		return nil, params, nil
	}
	var values [maxParams]string
	end := c.routes.find(path[1:], &values, 0)
	if end == nil {
		return nil, params, nil
	}
	op = end.methods[method]
	if op == nil {
		return nil, params, end.allow
	}
	for i, name := range op.PathParams {
		params[i] = Param{Name: name, Value: values[i]}
	}
	return op, params, end.allow
}

func (r *route) find(path string, values *[maxParams]string, n int) *route {
	seg, rest, more := strings.Cut(path, "/")
	if next := r.literal[seg]; next != nil {
		if end := next.end(rest, more, values, n); end != nil {
			return end
		}
	}
	if r.param == nil || seg == "" || n == maxParams {
		return nil
	}
	values[n] = seg
	return r.param.end(rest, more, values, n+1)
}

func (r *route) end(rest string, more bool, values *[maxParams]string, n int) *route {
	if more {
		return r.find(rest, values, n)
	}
	if r.methods == nil {
		return nil
	}
	return r
}
