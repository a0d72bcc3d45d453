package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast.dev/libs/contract"
)

const internalDoc = `
openapi: 3.1.0
paths:
  /internal/v1/things/{id}:
    put:
      operationId: putThing
      x-callers: [console, bookings]
      x-required-permission: manage things
      parameters: [{ name: Idempotency-Key, in: header, schema: { type: string } }]
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: "#/components/schemas/Thing" } } }
      responses: { "200": { description: "It.", content: { application/json: { schema: { $ref: "../openapi.yaml#/components/schemas/Thing" } } } } }
components:
  schemas:
    Thing:
      type: object
      required: [whole]
      properties:
        whole: { type: object, additionalProperties: true }
        part: { type: object }
`

// An internal document contains the callers of its operations. A value whose additionalProperties are true is passed to the service
// unchanged, to any depth.
func TestLoadInternal(t *testing.T) {
	t.Parallel()
	c, err := contract.LoadInternal([]byte(internalDoc), "things")
	if err != nil {
		t.Fatal(err)
	}
	op := c.Operation("putThing")
	if op.Service != "things" || strings.Join(op.Callers, " ") != "console bookings" || op.Permission != "manage things" || !op.Idempotent || op.Scopes != nil {
		t.Errorf("%+v", op)
	}
	const sent = `{"z":{"y":{"x":[{"w":[1,"\u00e9",null,true]}]}},"a":{},"a2":[[[]]]}`
	b, err := op.Parse([]byte(`{"whole":` + sent + `}`))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Whole json.RawMessage `json:"whole"`
	}
	if err := op.ValidateBody(b, true); err != nil {
		t.Fatal(err)
	}
	if err := op.Decode(b, &got); err != nil || string(got.Whole) != strings.Replace(sent, `\u00e9`, "é", 1) {
		t.Errorf("%s, %v", got.Whole, err)
	}
	if _, err := contract.LoadInternal([]byte(strings.Replace(internalDoc, "x-callers", "x-other", 1)), "things"); err == nil || !strings.Contains(err.Error(), "x-callers is missing") {
		t.Errorf("got %v", err)
	}
}

// The operations of a direct API need a scope, and no callers.
func TestLoadDirect(t *testing.T) {
	t.Parallel()
	direct := strings.Replace(internalDoc, "x-callers: [console, bookings]", `x-required-scopes: ["write:things"]`, 1)
	c, err := contract.LoadDirect([]byte(direct), "things")
	if err != nil || c.Operation("putThing").Scopes[0] != "write:things" {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := contract.LoadDirect([]byte(internalDoc), "things"); err == nil || !strings.Contains(err.Error(), "x-required-scopes is missing") {
		t.Errorf("got %v", err)
	}
}
