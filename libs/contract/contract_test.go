package contract_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/contract"
)

func load(t testing.TB) *contract.Contract {
	t.Helper()
	doc, err := os.ReadFile("testdata/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.Load(doc)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOperations(t *testing.T) {
	t.Parallel()
	c := load(t)
	op := c.Operation("createOrder")
	if op.Method != "POST" || op.Path != "/orders" || op.Success != 201 || !slices.Equal(op.Statuses, []int{201, 422}) {
		t.Errorf("createOrder: %+v", op)
	}
	if !op.HasBody || !op.BodyRequired || !op.Secret || !op.Personal || op.Cacheable() || !slices.Equal(op.Scopes, []string{"write:orders"}) {
		t.Errorf("createOrder: %+v", op)
	}
	if op := c.Operation("closeLine"); !op.HasBody || op.BodyRequired || op.Secret || op.Personal || !op.Cacheable() || !slices.Equal(op.PathParams, []string{"id", "line"}) {
		t.Errorf("closeLine: %+v", op)
	}
	if c.Operation("getShelf").Personal || !c.Operation("expandShelf").Personal {
		t.Error("a person who is only included on request is in every response, or in none")
	}
	if !c.Operation("getLatestOrder").Stream || op.Stream {
		t.Error("a stream is marked by x-stream alone")
	}
	if c.Operation("nothing") != nil {
		t.Error("an unknown operation was found")
	}
	if n := len(c.Operations()); n != 9 {
		t.Errorf("%d operations", n)
	}
	var ids []string
	for _, op := range c.For("shop") {
		ids = append(ids, op.ID)
	}
	if want := []string{"listOrders", "createOrder", "getLatestOrder", "getOrder", "deleteOrder", "closeOrder"}; !slices.Equal(ids, want) {
		t.Errorf("shop has %v", ids)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	const head = "openapi: 3.1.0\npaths:\n  /a:\n    get:\n"
	const good = "      operationId: a\n      x-service: s\n      x-required-scopes: []\n      responses: {\"200\": {description: ok}}\n"
	if _, err := contract.Load([]byte(head + good)); err != nil {
		t.Fatal(err)
	}
	for name, doc := range map[string]string{
		"no mapping":         "- a\n",
		"no YAML":            "\t{",
		"no operations":      "openapi: 3.1.0\n",
		"no operationId":     head + strings.Replace(good, "operationId: a", "summary: a", 1),
		"no service":         head + strings.Replace(good, "x-service: s", "summary: a", 1),
		"no scopes":          head + strings.Replace(good, "x-required-scopes: []", "summary: a", 1),
		"no success":         head + strings.Replace(good, "200", "404", 1),
		"status class":       head + strings.Replace(good, "200", "2XX", 1),
		"same route twice":   "openapi: 3.1.0\npaths:\n  /a/{id}:\n    get:\n" + good + "  /a/{name}:\n    get:\n" + strings.Replace(good, "operationId: a", "operationId: b", 1),
		"same id twice":      head + good + "  /b:\n    get:\n" + good,
		"dangling reference": head + good + "      requestBody: {$ref: \"#/components/requestBodies/None\"}\n",
		"circular reference": head + good + "      requestBody: {$ref: \"#/components/requestBodies/A\"}\ncomponents: {requestBodies: {A: {$ref: \"#/components/requestBodies/A\"}}}\n",
		"bad schema":         head + good + "      requestBody: {content: {application/json: {schema: {type: strin}}}}\n",
		"no JSON body":       head + good + "      requestBody: {content: {text/plain: {schema: {type: string}}}}\n",
		"exploded list":      head + good + "      parameters: [{name: l, in: query, schema: {type: array, items: {type: string}}}]\n",
		"flat object":        head + good + "      parameters: [{name: o, in: query, schema: {type: object}}]\n",
		"alias":              head + good + "x-a: &a 1\nx-b: *a\n",
	} {
		if _, err := contract.Load([]byte(doc)); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
}

// TestPublicContract loads the document that the services are started with.
func TestPublicContract(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../proto/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.Load(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"identity", "customers", "bookings"} {
		if len(c.For(service)) == 0 {
			t.Errorf("%s has no operations", service)
		}
	}
}

// The validator uses the keywords of x-validate instead of those that generators read.
func TestExactForm(t *testing.T) {
	t.Parallel()
	for exact, want := range map[string]string{"": "", "x-validate: { required: [a] },": "a: Is required."} {
		c, err := contract.Load([]byte(`openapi: 3.1.0
paths:
  /things:
    post:
      operationId: createThing
      x-service: things
      x-required-scopes: []
      requestBody:
        required: true
        content: { application/json: { schema: { type: object, ` + exact + ` properties: { a: { type: string } } } } }
      responses:
        "201": { description: Made. }
`))
		if err != nil {
			t.Fatal(err)
		}
		op := c.Operation("createThing")
		if got := messages(op.ValidateBody(parse(t, op, "{}"), false)); got != want {
			t.Errorf("%q: %q, want %q", exact, got, want)
		}
		if got := messages(op.ValidateBody(parse(t, op, `{"a":1}`), false)); got != "a: Must be a string." {
			t.Errorf("%q: %q", exact, got)
		}
	}
}
