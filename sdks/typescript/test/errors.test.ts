import assert from "node:assert/strict";
import { test } from "node:test";
import * as sdk from "@holdfast/sdk";
import {
  APIError,
  BookingNotFound,
  ConflictError,
  HoldfastError,
  NotFoundError,
  ServerError,
  SlotUnavailable,
  ValidationError,
} from "@holdfast/sdk";
import { failure, json, serve } from "./server.js";

test("an error has the fields of the response", async (t) => {
  const body = {
    message: "event_date is required. (and 1 more error)",
    errors: { event_date: ["event_date is required."], "metadata.a": ["Too long."] },
    error: {
      type: "validation_error",
      code: "invalid_request",
      message: "event_date is required.",
      param: "event_date",
      doc_url: "https://x/docs/errors#invalid_request",
      request_id: "req_9",
    },
  };
  const { client } = await serve(t, json(body, 422, { "x-request-id": "req_9" }));
  const error = await client()
    .bookings.create({})
    .catch((e: unknown) => e);
  assert.ok(error instanceof ValidationError && error instanceof APIError && error instanceof HoldfastError && error instanceof Error);
  assert.equal(error.status, 422);
  assert.equal(error.code, "invalid_request");
  assert.equal(error.type, "validation_error");
  assert.equal(error.message, "event_date is required.");
  assert.equal(error.param, "event_date");
  assert.deepEqual(error.errors, body.errors);
  assert.equal(error.requestId, "req_9");
  assert.equal(error.docUrl, "https://x/docs/errors#invalid_request");
  assert.equal(error.name, "InvalidRequest");
  assert.deepEqual(error.body, body);
});

test("each code has its own class, and its status another", async (t) => {
  const { client } = await serve(t, failure(409, "slot_unavailable"), failure(404, "booking_not_found"));
  const taken = await client()
    .bookings.create({})
    .catch((e: unknown) => e);
  assert.ok(taken instanceof SlotUnavailable && taken instanceof ConflictError);
  const missing = await client()
    .bookings.get("bk_2")
    .catch((e: unknown) => e);
  assert.ok(missing instanceof BookingNotFound && missing instanceof NotFoundError && !(missing instanceof ConflictError));
});

test("a code that this version does not know has the class of its status", async (t) => {
  const statuses: [number, string][] = [
    [400, "BadRequestError"],
    [401, "AuthenticationError"],
    [403, "PermissionError"],
    [404, "NotFoundError"],
    [409, "ConflictError"],
    [412, "PreconditionError"],
    [418, "APIError"],
    [422, "ValidationError"],
    [429, "RateLimitError"],
    [501, "ServerError"],
    [503, "ServerError"],
  ];
  for (const code of ["invented_later", "constructor"]) {
    const { client } = await serve(t, ...statuses.map(([status]) => failure(status, code)));
    for (const [status, name] of statuses) {
      const error = await client({ maxRetries: 0 })
        .me.get()
        .catch((e: unknown) => e);
      assert.ok(error instanceof APIError);
      assert.deepEqual([error.status, error.code, error.constructor.name], [status, code, name]);
    }
  }
});

test("a response of a proxy is an error of its status", async (t) => {
  const { client } = await serve(
    t,
    (response) => void response.writeHead(502, { "x-request-id": "req_3" }).end("<html>bad gateway</html>"),
    json(null, 500),
    json({ error: "text" }, 500),
  );
  const expected = ["req_3", "req_1", "req_1"];
  for (const requestId of expected) {
    const error = await client({ maxRetries: 0 })
      .me.get()
      .catch((e: unknown) => e);
    assert.ok(error instanceof ServerError);
    assert.equal(error.code, "unknown");
    assert.equal(error.requestId, requestId);
    assert.match(error.message, /status 50/);
  }
});

test("all errors are exported", () => {
  const classes = Object.entries(sdk).filter(([, value]) => typeof value === "function" && value.prototype instanceof APIError);
  assert.ok(classes.length > 30, `${classes.length}`);
});
