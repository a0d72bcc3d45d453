package main

import (
	"strings"
	"testing"

	"holdfast.dev/sdks/generate/model"
)

// TestTypeScript checks the method of each form of operation.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	id := []model.Param{{Name: "id", Required: true}, {Name: "part_id", Required: true}}
	things := model.Resource{Name: model.Name{"small", "things"}, Object: "Thing", Operations: []model.Operation{
		{
			ID: "listThings", Name: model.Name{"list"}, Kind: model.Page, Method: "GET", Path: "/things", Response: "ThingList", Item: "Thing",
			QueryParams: []model.Param{{Name: "cursor"}}, Summary: "List things", Description: "Returns */ things.", Scopes: []string{"read:things"},
		},
		{
			ID: "listThingsCsv", Name: model.Name{"list", "csv"}, Kind: model.Raw, Method: "GET", Path: "/things", MediaType: "text/csv",
			QueryParams: []model.Param{{Name: "q", Required: true}}, Summary: "List things as CSV",
		},
		{
			ID: "createThing", Name: model.Name{"create"}, Method: "POST", Path: "/things", Request: "ThingCreate", RequestRequired: true, Response: "Thing",
			Idempotent: true, Strict: true, Summary: "Create a thing",
		},
		{
			ID: "openThing", Name: model.Name{"open"}, Method: "POST", Path: "/things/{id}/{part_id}/open", PathParams: id, Request: "ThingOpen", Response: "Thing",
			Idempotent: true, Strict: true, Conditional: true, Summary: "Open a thing",
		},
		{ID: "deleteThing", Name: model.Name{"delete"}, Method: "DELETE", Path: "/things/{id}", PathParams: id[:1], Conditional: true, Summary: "Delete a thing"},
		{ID: "streamEvents", Name: model.Name{"stream"}, Kind: model.Stream, Method: "GET", Path: "/things/stream", Item: "WebhookEvent", QueryParams: []model.Param{{Name: "type"}}, Summary: "Stream things"},
	}}
	m := &model.Model{
		Resources: []model.Resource{things},
		Errors:    []model.ErrorCode{{Code: "thing_taken", Status: 409, Cause: "It is taken."}, {Code: "too_big", Status: 413}, {Code: "broken", Status: 503}},
	}
	files, err := typeScript(m, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	for path, lines := range map[string][]string{
		"src/version.gen.ts": {`export const VERSION = "1.2.3";`},
		"src/errors.gen.ts": {
			`import { APIError, ConflictError, ServerError, type ErrorClass } from "./errors.js";`, "export class ThingTaken extends ConflictError {}",
			"export class TooBig extends APIError {}", "export class Broken extends ServerError {}", `  ["thing_taken", ThingTaken],`, "/** 409 `thing_taken`: It is taken. */",
		},
		"src/client.gen.ts": {`import { SmallThingsResource } from "./resources/small-things.gen.js";`, "  readonly smallThings: SmallThingsResource = new SmallThingsResource(this);"},
		"src/resources/small-things.gen.ts": {
			"   * Returns *\\/ things.", "   * Scope: `read:things`.",
			`  list(query?: ListThingsData["query"], options?: RequestOptions): Pages<Thing> {`, `    return this.client.pages("/things", { query }, options);`,
			`  listCsv(query: Omit<NonNullable<ListThingsData["query"]>, "cursor" | "limit">, options?: RequestOptions): APIPromise<Response> {`,
			`    return this.client.raw("GET", "/things", { query, accept: "text/csv" }, options);`,
			`  create(body: ThingCreate, options?: WriteOptions): APIPromise<Thing> {`, `    return this.client.request("POST", "/things", { body }, options);`,
			`  open(id: string, partId: string, body?: ThingOpen, options?: WriteOptions & ConditionalOptions): APIPromise<Thing> {`,
			`    return this.client.request("POST", "/things/{id}/{part_id}/open", { params: { id, part_id: partId }, body }, options);`,
			`  delete(id: string, options?: RequestOptions & ConditionalOptions): APIPromise<void> {`,
			`  stream(query?: StreamEventsData["query"], options?: StreamOptions): EventStream<AnyEvent> {`,
			`    return new EventStream(this.client, "/things/stream", query, options);`,
			`import type { ConditionalOptions, RequestOptions, WriteOptions } from "../options.js";`, `import type { Pages } from "../pages.js";`,
			`import type { APIPromise } from "../promise.js";`, `import { EventStream, type StreamOptions } from "../stream.js";`,
			`import type { ListThingsData, StreamEventsData, Thing, ThingCreate, ThingOpen } from "../types.gen.js";`,
		},
		"reference.md": {"| `client.smallThings.open(id, partId, body?)` | `POST /things/{id}/{part_id}/open` | `Thing` |  |", "| `client.smallThings.list(query?)` | `GET /things` | `Pages<Thing>` | `read:things` |"},
	} {
		for _, line := range lines {
			if text := string(files[path]); !strings.Contains("\n"+text, "\n"+line+"\n") {
				t.Errorf("%s lacks %s:\n%s", path, line, text)
			}
		}
	}
}

// TestTypeScriptKeys checks that an operation which the client would send in the wrong form is rejected.
func TestTypeScriptKeys(t *testing.T) {
	t.Parallel()
	for _, op := range []model.Operation{{Method: "POST", Strict: true}, {Method: "PATCH", Idempotent: true}, {Method: "GET", Idempotent: true, Strict: true}} {
		op.ID, op.Name = "openThing", model.Name{"open"}
		m := &model.Model{Resources: []model.Resource{{Name: model.Name{"things"}, Operations: []model.Operation{op}}}}
		if _, err := typeScript(m, ""); err == nil || !strings.Contains(err.Error(), "openThing") {
			t.Errorf("%+v: %v", op, err)
		}
	}
}
