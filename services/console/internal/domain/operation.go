package domain

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/forms"
)

// publicBase is the path prefix of the operations of the public contract.
const publicBase = "/api/v1"

// Operation is a call of a service: one of the public contract, or an internal one for the operators' area.
type Operation struct {
	ID         string // operationId
	Service    string
	Method     string
	Path       string // absolute, with {id} for parameters
	PathParams []string
	Scopes     []string // required from the operator's role
	Permission string   // also required; "": none
	Secret     bool     // its response contains a secret
	HasBody    bool
	CSV        bool // the list is also available as text/csv
	forms.Form
}

// Deletes reports whether the call deletes something, so that a repetition finds nothing.
func (op *Operation) Deletes() bool { return op.Method == "DELETE" }

// Operations are all calls by operationId.
type Operations map[string]*Operation

// NewOperations reads the operations of the public contract, and the internal calls from the documents of the services.
func NewOperations(c *contract.Contract, public []byte, internal map[string][]byte) (Operations, error) {
	out := Operations{}
	byID, err := forms.Load(public)
	if err != nil {
		return nil, err
	}
	for _, op := range c.Operations() {
		out[op.ID] = &Operation{
			ID: op.ID, Service: op.Service, Method: op.Method, Path: publicBase + op.Path, PathParams: op.PathParams, Scopes: op.Scopes, Secret: op.Secret,
			HasBody: op.HasBody, CSV: op.CSV != nil, Form: byID[op.ID],
		}
	}
	for service, doc := range internal {
		if byID, err = forms.Load(doc); err != nil {
			return nil, err
		}
		for id, f := range byID {
			if out[id] != nil {
				return nil, fmt.Errorf("operation %s is in two documents", id)
			}
			one := &Operation{ID: id, Service: service, Method: f.Method, Path: f.Path, Scopes: f.Scopes, Permission: f.Permission, Secret: f.Secret, HasBody: f.HasBody, Form: f}
			for _, segment := range strings.Split(f.Path, "/") {
				if name, ok := strings.CutPrefix(segment, "{"); ok {
					one.PathParams = append(one.PathParams, strings.TrimSuffix(name, "}"))
				}
			}
			out[id] = one
		}
	}
	return out, nil
}

// Address returns the path of a call with its parameters and its query.
func (op *Operation) Address(params []string, query url.Values) string {
	path := op.Path
	for i, name := range op.PathParams {
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(params[i]), 1)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

type permissionsKey struct{}

// With returns a context in which calls are made for the operator of a workspace.
func (w Workspace) With(ctx context.Context, requestID string) context.Context {
	return context.WithValue(caller.With(ctx, w.Caller(requestID)), permissionsKey{}, w.Tenant.Permissions)
}

// Allowed returns ErrForbidden if the operator in ctx cannot make this call.
func (op *Operation) Allowed(ctx context.Context) error {
	who, err := caller.Require(ctx)
	if err != nil {
		return err
	}
	for _, scope := range op.Scopes {
		if !who.Has(scope) {
			return ErrForbidden.WithMessage("Your role does not allow this: it lacks %s.", scope)
		}
	}
	if permissions, _ := ctx.Value(permissionsKey{}).([]string); op.Permission != "" && !slices.Contains(permissions, op.Permission) {
		return ErrForbidden.WithMessage("Your role does not allow this: it may not %s.", op.Permission)
	}
	return nil
}
