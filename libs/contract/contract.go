// Package contract reads the public OpenAPI 3.1 document once at start. It provides routes, scopes and target services for the
// gateway, and validators of bodies and queries for the services. Bodies are I-JSON (RFC 7493). The package follows JSON Schema
// 2020-12 and is stricter in two points: an integer must be written as an integer (10.0 and 1e2 are invalid), and no text can
// contain a NUL character. Invalid fields are returned in the document's property order.
package contract

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/yamldoc"
)

// Contract is a compiled document. It is immutable and safe for concurrent use.
type Contract struct {
	operations []*Operation
	byID       map[string]*Operation
	kinds      map[string]*mask
}

// Operation is one method on one path of the contract.
type Operation struct {
	ID       string
	Method   string   // upper case
	Path     string   // relative to the base path, with {id}
	Service  string   // x-service: the process that responds
	Scopes   []string // x-required-scopes: all are needed
	Success  int      // the declared 2xx status
	Statuses []int    // all declared statuses, in the document's order
	Codes    []string // x-error-codes: every error.code that the operation returns
	// HasBody reports that a body is declared. BodyRequired reports that it must be sent.
	HasBody, BodyRequired bool
	// Secret reports that the response contains a secret (x-secret-response). It is encrypted in the table and never cached
	// elsewhere.
	Secret bool
	// Personal reports that the response contains personal data (a field marked x-personal). It is never cached outside the table,
	// where the erasure of the person's data finds it.
	Personal bool
	// Public reports that the operation needs no credential (x-public). Its path determines what it can read.
	Public bool
	// Callers are the services that may make an internal call (x-callers). Permission is the permission that it requires in
	// addition to the scopes (x-required-permission). Idempotent reports that it declares the header Idempotency-Key. They are
	// empty in the public contract.
	Callers    []string
	Permission string
	Idempotent bool
	// Stream reports that the response lasts for minutes (x-stream) and is forwarded while it arrives.
	Stream bool
	// Download reports that the response can have any size (x-download). It is forwarded while it arrives, and an incomplete
	// response is useless.
	Download bool
	// CSV are the columns of the list as text/csv (x-csv); nil when the operation returns JSON only.
	CSV []Column
	// PathParams are the names in Path, from left to right.
	PathParams []string

	body   *jsonschema.Schema
	shape  *shape
	params []*parameter
}

// Cacheable reports whether a response may be cached outside the service that returned it.
func (op *Operation) Cacheable() bool { return !op.Secret && !op.Personal }

// Load compiles an OpenAPI 3.1 document (YAML or JSON). It fails if the services could not use the document: a missing operationId
// or x-service, two operations with the same name, or a schema that does not compile.
func Load(doc []byte) (*Contract, error) { return load(doc, "", false) }

// LoadInternal compiles a document of proto/internal: the calls that other services make to one service. Its operations need
// x-callers, but neither x-service nor x-required-scopes. Its responses are not read.
func LoadInternal(doc []byte, service string) (*Contract, error) { return load(doc, service, false) }

// LoadDirect compiles a document of an API that clients reach without the gateway. It is like LoadInternal, but its operations need
// x-required-scopes instead of x-callers.
func LoadDirect(doc []byte, service string) (*Contract, error) { return load(doc, service, true) }

func load(doc []byte, service string, direct bool) (*Contract, error) {
	l, err := newLoader(doc)
	if err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	l.service, l.direct = service, direct
	c := &Contract{byID: map[string]*Operation{}}
	routes := map[string]bool{}
	ops, err := l.operations()
	if err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	for _, op := range ops {
		if c.byID[op.ID] != nil {
			return nil, fmt.Errorf("contract: operationId %q is given twice", op.ID)
		}
		route := op.route()
		if routes[route] {
			return nil, fmt.Errorf("contract: %s %s is given twice", op.Method, op.Path)
		}
		routes[route] = true
		c.byID[op.ID] = op
		c.operations = append(c.operations, op)
	}
	if service == "" {
		if c.kinds, err = l.kinds(); err != nil {
			return nil, fmt.Errorf("contract: %w", err)
		}
	}
	if len(c.operations) == 0 {
		return nil, fmt.Errorf("contract: the document has no operations")
	}
	return c, nil
}

// Operations returns all operations in the document's order.
func (c *Contract) Operations() []*Operation { return c.operations }

// Operation returns the operation with an operationId, or nil if there is none.
func (c *Contract) Operation(id string) *Operation { return c.byID[id] }

// For returns the operations whose x-service is service, in the document's order.
func (c *Contract) For(service string) []*Operation {
	var out []*Operation
	for _, op := range c.operations {
		if op.Service == service {
			out = append(out, op)
		}
	}
	return out
}

// identify reads the id, the service and the extensions of the operation. service is the service of an internal document, or "" in
// the public contract. direct reports that clients reach it without the gateway.
func (op *Operation) identify(item, node *yaml.Node, service string, direct bool) error {
	op.ID = yamldoc.Text(node, "operationId")
	op.Service = cmp.Or(service, yamldoc.Text(node, "x-service"), yamldoc.Text(item, "x-service"))
	if op.ID == "" || op.Service == "" {
		return errors.New("operationId or x-service is missing")
	}
	for name, into := range map[string]*[]string{"x-required-scopes": &op.Scopes, "x-error-codes": &op.Codes, "x-callers": &op.Callers} {
		if list := yamldoc.Child(node, name); list != nil {
			if err := list.Decode(into); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	switch {
	case service == "" && yamldoc.Child(node, "x-required-scopes") == nil:
		return errors.New("x-required-scopes is missing: list the scopes, or [] when any credential is enough")
	case direct && len(op.Scopes) == 0:
		return errors.New("x-required-scopes is missing: list the scopes of the call")
	case service != "" && !direct && len(op.Callers) == 0:
		return errors.New("x-callers is missing: list the services that may make the call")
	}
	op.Permission = yamldoc.Text(node, "x-required-permission")
	op.Secret = yamldoc.Text(node, "x-secret-response") == "true"
	op.Stream = yamldoc.Text(node, "x-stream") == "true"
	op.Download = yamldoc.Text(node, "x-download") == "true"
	op.Public = yamldoc.Text(node, "x-public") == "true"
	return nil
}

// responses reads the declared statuses. The first 2xx is the success status.
func (op *Operation) responses(node *yaml.Node) error {
	for status := range yamldoc.Pairs(node) {
		n, err := strconv.Atoi(status)
		if err != nil {
			return fmt.Errorf("status %q: a status must be a number", status)
		}
		op.Statuses = append(op.Statuses, n)
		if n/100 == 2 && op.Success == 0 {
			op.Success = n
		}
	}
	if op.Success == 0 {
		return errors.New("no 2xx response is declared")
	}
	return nil
}
