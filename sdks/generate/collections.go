package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"holdfast.dev/sdks/generate/model"
)

// collection is a set of requests for an API client with a user interface, before it is written in the format of one.
type collection struct {
	docs    string
	folders []folder
	ids     []string // names of the variables with IDs, such as bookingId
}

type folder struct {
	name, docs string
	requests   []request
}

// request is a request whose values can be variables: {{bookingId}}.
type request struct {
	name, docs, method string
	path               string // relative to {{baseUrl}}
	query, headers     []value
	body               string // JSON, or ""
	public             bool   // sent without the API key
}

// value is a parameter of the query or a header.
type value struct {
	name, value, docs string
	off               bool // not sent until a person switches it on
}

// The names of the variables, and the URL of a platform that `make up` starts.
const (
	localURL      = "http://127.0.0.1:8080/api/v1"
	dayVariable   = "{{eventDate}}"
	collectionDoc = "The requests of the Holdfast API, generated from its contract.\n\n" +
		"Set the variables `baseUrl` (it ends in `/api/v1`) and `apiKey`, then run the requests of the folder *%s* in their order. " +
		"Each response stores the ID of its object in a variable such as `bookingId`, which later requests use. " +
		"`eventDate` is the Saturday after the next 60 days. Each write has a new Idempotency-Key."
)

// chain is the first folder: requests that work in this order, from an empty catalogue to a cancelled booking.
var chain = struct {
	name       string
	operations []string // their IDs
}{"Quick start", []string{
	"createService", "createUnit", "createPackage", "listAvailability", "createCustomer", "createBooking", "getBooking", "updateBooking", "cancelBooking",
}}

// writeCollections writes the collections to a folder.
func writeCollections(m *model.Model, folder string) error {
	files, err := collections(m)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(folder, "bruno")); err != nil { // it has a file for each operation
		return err
	}
	return write(folder, files)
}

// collections returns the collections by path.
func collections(m *model.Model) (map[string][]byte, error) {
	c, err := newCollection(m)
	if err != nil {
		return nil, err
	}
	files := bruno(c)
	files["holdfast.postman_collection.json"], err = postman(c)
	return files, err
}

// newCollection returns a folder for each resource, after the first one.
func newCollection(m *model.Model) (collection, error) {
	ids := idVariables(m)
	c := collection{docs: fmt.Sprintf(collectionDoc, chain.name), ids: ids.names()}
	first := folder{name: chain.name, docs: "Creates a catalogue, a customer and a booking, and cancels the booking.", requests: make([]request, len(chain.operations))}
	for _, res := range m.Resources {
		f := folder{name: title(res.Name.String()), docs: res.Description}
		for _, op := range res.Operations {
			r := ids.request(res, op)
			f.requests = append(f.requests, r)
			if i := slices.Index(chain.operations, op.ID); i >= 0 {
				first.requests[i] = r
			}
		}
		c.folders = append(c.folders, f)
	}
	if i := slices.IndexFunc(first.requests, func(r request) bool { return r.name == "" }); i >= 0 {
		return c, fmt.Errorf("the contract has no operation %s", chain.operations[i])
	}
	c.folders = slices.Insert(c.folders, 0, first)
	return c, nil
}

// title returns a text with a capital letter.
func title(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// variables are the names of the variables with IDs, by the prefix of the IDs.
type variables map[string]string

// idVariables returns the variables of all IDs in paths.
func idVariables(m *model.Model) variables {
	ids := variables{}
	for _, res := range m.Resources {
		for _, op := range res.Operations {
			for _, p := range op.PathParams {
				if prefix, _, found := strings.Cut(fmt.Sprint(p.Example), "_"); found {
					ids[prefix] = pathVariable(res, p)
				}
			}
		}
	}
	return ids
}

func (v variables) names() []string {
	var all []string
	for _, name := range v {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// pathVariable returns the variable of a parameter in the path: bookingId for the id of a booking.
func pathVariable(res model.Resource, p model.Param) string {
	if p.Name == "id" {
		return res.Name.Singular().Camel() + "Id"
	}
	return model.Split(p.Name).Camel()
}

var (
	exampleID  = regexp.MustCompile(`\b([a-z]+)_[0-9][A-Za-z0-9]{15,}\b`)
	exampleDay = regexp.MustCompile(`("event_date": ")\d{4}-\d\d-\d\d"`)
	anyDay     = regexp.MustCompile(`^\d{4}-\d\d-\d\d`)
)

// fill returns an example with variables in place of its IDs.
func (v variables) fill(example string) string {
	return exampleID.ReplaceAllStringFunc(example, func(id string) string {
		prefix, _, _ := strings.Cut(id, "_")
		if name := v[prefix]; name != "" {
			return "{{" + name + "}}"
		}
		return id
	})
}

// request returns the request of an operation, with the examples of the contract.
func (v variables) request(res model.Resource, op model.Operation) request {
	r := request{
		name: op.Summary, docs: op.Description, method: op.Method, path: op.Path, public: op.Public,
		body: exampleDay.ReplaceAllString(v.fill(op.RequestExample), "${1}"+dayVariable+`"`),
	}
	if len(op.Scopes) > 0 {
		r.docs += "\n\nScope: `" + strings.Join(op.Scopes, "`, `") + "`."
	}
	for _, p := range op.PathParams {
		r.path = strings.Replace(r.path, "{"+p.Name+"}", "{{"+pathVariable(res, p)+"}}", 1)
	}
	for _, p := range op.QueryParams {
		r.query = append(r.query, v.parameter(p))
	}
	if op.Idempotent {
		r.headers = append(r.headers, value{name: "Idempotency-Key", value: "{{$guid}}"})
	}
	if op.Strict {
		r.headers = append(r.headers, value{name: "Prefer", value: "handling=strict"})
	}
	if op.Conditional {
		r.headers = append(r.headers, value{name: "If-Match", value: `"1"`, docs: "Fails with 412 if the object has another version.", off: true})
	}
	if op.Kind != model.Plain && op.Kind != model.Page {
		r.headers = append(r.headers, value{name: "Accept", value: op.MediaType})
	}
	for _, p := range op.HeaderParams {
		r.headers = append(r.headers, v.parameter(p))
	}
	return r
}

// parameter returns a parameter with its example. Optional ones are switched off. Required days are in the future.
func (v variables) parameter(p model.Param) value {
	out := value{name: p.Name, docs: p.Description, off: !p.Required}
	switch example := p.Example.(type) {
	case map[string]any:
		for key, one := range example {
			out.name, out.value = p.Name+"["+key+"]", fmt.Sprint(one)
		}
	case []any:
		var parts []string
		for _, one := range example {
			parts = append(parts, fmt.Sprint(one))
		}
		out.value = strings.Join(parts, ",")
	default:
		out.value = fmt.Sprint(example)
	}
	if out.value = v.fill(out.value); p.Required {
		out.value = anyDay.ReplaceAllString(out.value, dayVariable)
	}
	return out
}
