import assert from "node:assert/strict";
import { test } from "node:test";
import { APIError, ConnectionError, Holdfast, RateLimitError, TimeoutError } from "@holdfast/sdk";
import { cut, cutBody, failure, type Handler, hang, json, serve, withoutBackoff } from "./server.js";

const created = json({ id: "bk_1" }, 201);

const temporary: [string, Handler][] = [
  ["a closed connection", cut],
  ["a body that ends early", cutBody],
  ["a body that is not JSON", (response) => void response.end("<html>")],
  ["408", failure(408, "unknown")],
  ["409 idempotency_in_progress", failure(409, "idempotency_in_progress")],
  ["425", failure(425, "unknown")],
  ["429", failure(429, "rate_limited", { "retry-after": "0" })],
  ["500", failure(500, "internal_error")],
  ["502", failure(502, "payment_intent_failed")],
  ["503 from a proxy", (response) => void response.writeHead(503).end("<html>")],
  ["504", failure(504, "upstream_timeout")],
];
for (const [name, handler] of temporary) {
  test(`a write is repeated with the same key after ${name}`, async (t) => {
    withoutBackoff(t);
    const { client, requests } = await serve(t, handler, handler, created);
    const booking = await client().bookings.create({ event_date: "2030-06-01" });
    assert.equal(booking.id, "bk_1");
    assert.equal(requests.length, 3);
    assert.equal(new Set(requests.map(({ headers }) => headers["idempotency-key"])).size, 1);
    assert.notEqual(requests[0]?.headers["idempotency-key"], undefined);
    assert.equal(new Set(requests.map(({ body }) => body)).size, 1);
  });
}

const final: [number, string][] = [
  [400, "malformed_json"],
  [401, "invalid_credential"],
  [403, "insufficient_scope"],
  [404, "booking_not_found"],
  [409, "slot_unavailable"],
  [409, "gateway_not_configured"],
  [412, "version_mismatch"],
  [413, "request_too_large"],
  [422, "invalid_request"],
  [422, "idempotency_mismatch"],
];
for (const [status, code] of final) {
  test(`a write is not repeated after ${status} ${code}`, async (t) => {
    withoutBackoff(t);
    const { client, requests } = await serve(t, failure(status, code), created);
    await assert.rejects(async () => client().bookings.create({}), { status, code });
    assert.equal(requests.length, 1);
  });
}

for (const [status, code] of [
  [502, "payment_intent_failed"],
  [503, "unavailable"],
] as const) {
  test(`a write is not repeated after ${status} with Service-Should-Retry: false`, async (t) => {
    withoutBackoff(t);
    const { client, requests } = await serve(t, failure(status, code, { "service-should-retry": "false" }), created);
    await assert.rejects(async () => client().bookings.create({}), { status });
    assert.equal(requests.length, 1);
  });
}

test("a redirect is an error, because it could send the key elsewhere", async (t) => {
  const { client, requests } = await serve(t, (response) => void response.writeHead(307, { location: "/api/v1/other" }).end(), created);
  await assert.rejects(async () => client().bookings.create({}), { status: 307, code: "unknown" });
  assert.equal(requests.length, 1);
});

test("the last error is thrown when the attempts are used up", async (t) => {
  withoutBackoff(t);
  const { client, requests } = await serve(t, failure(503, "unavailable"));
  await assert.rejects(async () => client().me.get(), { code: "unavailable" });
  assert.equal(requests.length, 3);
  await assert.rejects(async () => client({ maxRetries: 0 }).me.get(), { code: "unavailable" });
  assert.equal(requests.length, 4);
  await assert.rejects(async () => client().me.get({ maxRetries: 1 }), { code: "unavailable" });
  assert.equal(requests.length, 6);
});

test("a refused connection is an error with its cause", async (t) => {
  withoutBackoff(t);
  const { client } = await serve(t, created);
  await assert.rejects(
    async () => client({ baseURL: "http://127.0.0.1:1/api/v1" }).me.get(),
    (error) => {
      assert.ok(error instanceof ConnectionError && !(error instanceof TimeoutError));
      assert.ok(error.cause instanceof Error);
      assert.equal(error.idempotencyKey, undefined);
      return true;
    },
  );
});

test("an attempt ends after its timeout and is repeated", async (t) => {
  withoutBackoff(t);
  const { expire, waits } = holdTimeouts(t);
  const { client, requests } = await serve(t, expire, created);
  assert.equal((await client({ timeout: 50 }).bookings.create({})).id, "bk_1");
  assert.deepEqual(waits, [50, 50]);
  assert.equal(requests.length, 2);
  assert.equal(requests[0]?.headers["idempotency-key"], requests[1]?.headers["idempotency-key"]);
});

test("a body that stops is part of the timeout", async (t) => {
  withoutBackoff(t);
  const { expire } = holdTimeouts(t);
  const stops: Handler = (response) => void response.writeHead(200, { "content-type": "application/json" }).write("{", expire);
  const { client } = await serve(t, stops);
  await assert.rejects(async () => client({ timeout: 50, maxRetries: 0 }).me.get(), TimeoutError);
});

test("the error of a write has its key", async (t) => {
  withoutBackoff(t);
  const { expire } = holdTimeouts(t);
  const { client, requests } = await serve(t, cut, expire, json({ id: "bk_1" }, 201));
  for (const [i, options] of [{ maxRetries: 0 }, { maxRetries: 0, timeout: 50 }].entries()) {
    const error = await client(options)
      .bookings.create({})
      .catch((e: unknown) => e);
    assert.ok(error instanceof ConnectionError);
    assert.notEqual(error.idempotencyKey, undefined);
    assert.equal(error.idempotencyKey, requests[i]?.headers["idempotency-key"]);
  }
});

test("a call ends after its deadline", async (t) => {
  let now = Date.now();
  t.mock.method(Date, "now", () => now);
  const { expire, waits } = holdTimeouts(t);
  const { client, requests } = await serve(t, () => {
    now += 100;
    expire();
  });
  await assert.rejects(async () => client({ deadline: 100, maxRetries: 50 }).me.get(), TimeoutError);
  assert.deepEqual(waits, [100]);
  assert.equal(requests.length, 1);
});

test("a call does not wait for a time after its deadline", async (t) => {
  const { client, requests } = await serve(t, failure(429, "rate_limited", { "retry-after": "30" }));
  await assert.rejects(async () => client({ deadline: 10_000 }).me.get(), RateLimitError);
  assert.equal(requests.length, 1);
});

test("Retry-After determines the wait, up to a minute", async (t) => {
  const waits = mockTimers(t);
  const soon = new Date(Date.now() + 20_000).toUTCString();
  const { client } = await serve(
    t,
    failure(503, "unavailable", { "retry-after": "7" }),
    failure(429, "rate_limited", { "retry-after": soon }),
    failure(429, "rate_limited", { "retry-after": "61" }),
  );
  await assert.rejects(async () => client({ maxRetries: 9 }).me.get(), { code: "rate_limited" });
  assert.equal(waits.length, 2);
  assert.equal(waits[0], 7_000);
  assert.ok(waits[1] !== undefined && waits[1] > 15_000 && waits[1] <= 20_000, `${waits[1]}`);
});

test("back-off is a random part of a time that doubles up to eight seconds", async (t) => {
  const waits = mockTimers(t);
  t.mock.method(Math, "random", () => 0.5);
  const { client } = await serve(t, failure(500, "internal_error"));
  await assert.rejects(async () => client({ maxRetries: 6 }).me.get(), APIError);
  assert.deepEqual(waits, [250, 500, 1000, 2000, 4000, 4000]);
});

test("a call that has ended leaves no timer and no listener", async (t) => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const fetch = async () => Response.json({});
  const { signal } = new AbortController();
  const added = t.mock.method(signal, "addEventListener");
  const removed = t.mock.method(signal, "removeEventListener");
  await new Holdfast({ apiKey: "k", baseURL: "http://host.invalid/api/v1", fetch }).me.get({ signal });
  assert.equal(timers(), before);
  assert.equal(added.mock.callCount(), 1);
  assert.equal(removed.mock.callCount(), 1);
});

test("a signal ends a request, a wait, and a call before it starts", async (t) => {
  const { client, requests } = await serve(t, hang, failure(503, "unavailable", { "retry-after": "50" }));
  for (const expected of [1, 2]) {
    const controller = new AbortController();
    const reason = new Error("the user left");
    const call = client().bookings.create({}, { signal: controller.signal });
    while (requests.length < expected) await new Promise((resolve) => setTimeout(resolve, 5));
    setTimeout(() => controller.abort(reason), 20);
    await assert.rejects(async () => call, reason);
  }
  await assert.rejects(async () => client().me.get({ signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.equal(requests.length, 2);
});

/** Returns the waits before repetitions, which pass immediately. Timeouts of attempts and of connections are not affected. */
function mockTimers(t: import("node:test").TestContext): number[] {
  const waits: number[] = [];
  const original = globalThis.setTimeout;
  t.mock.method(globalThis, "setTimeout", ((callback: () => void, ms: number, ...args: unknown[]) => {
    const ofPackage = /dist\/retry\.js/.test(new Error().stack ?? "");
    if (ofPackage) waits.push(ms);
    return original(callback, ofPackage ? 0 : ms, ...(args as []));
  }) as typeof setTimeout);
  return waits;
}

/** Holds the timeouts of attempts until the test calls `expire`, so that a slow machine does not end an attempt. */
function holdTimeouts(t: import("node:test").TestContext): { expire: () => void; waits: number[] } {
  const waits: number[] = [];
  let end = () => {};
  const original = globalThis.setTimeout;
  t.mock.method(globalThis, "setTimeout", ((callback: () => void, ms: number, ...args: unknown[]) => {
    const ofAttempt = callback.toString().includes("No complete response");
    if (ofAttempt) {
      waits.push(ms);
      end = callback;
    }
    return original(callback, ofAttempt ? 2 ** 30 : ms, ...(args as []));
  }) as typeof setTimeout);
  return { expire: () => end(), waits };
}
