import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Client, Holdfast, HoldfastError, VERSION } from "@holdfast/sdk";
import { json, serve } from "./server.js";

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test("a write sends its body, a key, and the preference for strict handling", async (t) => {
  const { client, requests } = await serve(t, json({ id: "bk_1", later: { added: true } }, 201, { "idempotent-replayed": "true" }));
  const { data, ...response } = await client().bookings.create({ event_date: "2030-06-01" }).withResponse();
  assert.deepEqual(data, { id: "bk_1", later: { added: true } }, "fields that this version does not know are returned");
  assert.equal(response.status, 201);
  assert.equal(response.replayed, true);
  assert.equal(response.requestId, "req_1");
  assert.equal(response.text, '{"id":"bk_1","later":{"added":true}}');
  const [request] = requests;
  assert.equal(request?.method, "POST");
  assert.equal(request.url, "/api/v1/bookings");
  assert.equal(request.body, '{"event_date":"2030-06-01"}');
  assert.equal(request.headers.authorization, "Bearer svc_test_key");
  assert.equal(request.headers["content-type"], "application/json");
  assert.equal(request.headers.prefer, "handling=strict");
  assert.equal(request.headers["user-agent"], `holdfast-typescript/${VERSION}`);
  assert.match(`${request.headers["idempotency-key"]}`, UUID_V4);
});

test("each call has its own key, unless the caller gives it", async (t) => {
  const { client, requests } = await serve(t, json({}));
  await client().bookings.create({});
  const response = await client().bookings.create({}, { idempotencyKey: "order-17", strict: false }).withResponse();
  assert.equal(response.replayed, false);
  const [first, second] = requests.map(({ headers }) => headers["idempotency-key"]);
  assert.notEqual(first, second);
  assert.equal(second, "order-17");
  assert.equal(requests[1]?.headers.prefer, undefined);
});

test("a read has neither a key nor a body", async (t) => {
  const { client, requests } = await serve(t, json({}));
  await client().bookings.get("bk_1", { expand: ["customer"] });
  const [request] = requests;
  assert.equal(request?.method, "GET");
  assert.equal(request.url, "/api/v1/bookings/bk_1?expand=customer");
  assert.equal(request.headers["idempotency-key"], undefined);
  assert.equal(request.headers.prefer, undefined);
  assert.equal(request.headers["content-type"], undefined);
});

test("queries contain lists, pairs and encoded values", async (t) => {
  const { client, requests } = await serve(t, json({ data: [], has_more: false, next_cursor: null }));
  await client()
    .bookings.list({ status: ["pending", "confirmed"], metadata: { "order no": "1&2" }, limit: 5 })
    .page();
  const query = new URL(`http://host${requests[0]?.url}`).searchParams;
  assert.deepEqual(
    [...query],
    [
      ["status", "pending,confirmed"],
      ["metadata[order no]", "1&2"],
      ["limit", "5"],
    ],
  );
});

test("an ID is one segment of the path", async (t) => {
  const { client, requests } = await serve(t, json({}));
  await client().bookings.get("a/b?c");
  assert.equal(requests[0]?.url, "/api/v1/bookings/a%2Fb%3Fc");
  for (const id of ["", ".", "..", undefined as unknown as string]) {
    await assert.rejects(async () => client().bookings.get(id), /id must be a non-empty string/);
  }
  assert.equal(requests.length, 1);
});

test("ifMatch is sent as an entity tag", async (t) => {
  const { client, requests } = await serve(t, json({}));
  for (const ifMatch of [3, "4", '"5"', "*"]) await client().bookings.update("bk_1", { notes: null }, { ifMatch });
  assert.deepEqual(
    requests.map(({ headers }) => headers["if-match"]),
    ['"3"', '"4"', '"5"', "*"],
  );
});

test("headers of the client and of a call are added", async (t) => {
  const { client, requests } = await serve(t, json({}));
  await client({ headers: { "X-Request-Id": "mine", "X-Trace": "1" } }).me.get({ headers: { "x-trace": "2" } });
  assert.equal(requests[0]?.headers["x-request-id"], "mine");
  assert.equal(requests[0]?.headers["x-trace"], "2");
});

test("a response without content is undefined", async (t) => {
  const { client, requests } = await serve(t, (response) => void response.writeHead(204).end());
  assert.equal(await client().webhookEndpoints.delete("we_1"), undefined);
  assert.equal(requests[0]?.method, "DELETE");
});

test("a document is returned as a response", async (t) => {
  const { client, requests } = await serve(
    t,
    (response) => void response.writeHead(200, { "content-type": "application/pdf" }).end("%PDF-1.7"),
  );
  const response = await client().invoices.getPdf("inv_1");
  assert.equal(response.headers.get("content-type"), "application/pdf");
  assert.equal(await response.text(), "%PDF-1.7");
  assert.equal(requests[0]?.url, "/api/v1/invoices/inv_1/pdf");
});

test("a list is downloaded as CSV without being stored in memory", async (t) => {
  const { client, requests } = await serve(t, async (response) => {
    response.writeHead(200, { "content-type": "text/csv" });
    response.write("id\n");
    await once(response, "resume");
  });
  const controller = new AbortController();
  const response = await client().bookings.listCsv({ status: ["confirmed"] }, { signal: controller.signal });
  const reader = response.body?.getReader();
  assert.equal(new TextDecoder().decode((await reader?.read())?.value), "id\n");
  assert.equal(requests[0]?.headers.accept, "text/csv");
  assert.equal(requests[0]?.url, "/api/v1/bookings?status=confirmed");
  controller.abort(new Error("enough"));
  await assert.rejects(async () => reader?.read(), /enough/);
});

test("operations that this version does not have can be called", async (t) => {
  const { baseURL, requests } = await serve(t, json({ ok: true }));
  const client = new Client({ apiKey: "svc_test_key", baseURL: `${baseURL}/` });
  assert.deepEqual(await client.request("POST", "/later/{id}", { params: { id: "x" }, body: { a: 1 }, query: { at: new Date(0) } }), {
    ok: true,
  });
  assert.equal(requests[0]?.url, "/api/v1/later/x?at=1970-01-01T00%3A00%3A00.000Z");
});

test("the key and the address can come from the environment", async (t) => {
  const { baseURL, requests } = await serve(t, json({}));
  const missing = (name: string) => (error: unknown) => error instanceof HoldfastError && error.message.includes(name);
  assert.throws(() => new Holdfast({ baseURL }), missing("HOLDFAST_API_KEY"));
  assert.throws(() => new Holdfast({ apiKey: "svc_test_key" }), missing("HOLDFAST_BASE_URL"));
  process.env.HOLDFAST_API_KEY = "svc_test_environment";
  process.env.HOLDFAST_BASE_URL = baseURL;
  t.after(() => {
    delete process.env.HOLDFAST_API_KEY;
    delete process.env.HOLDFAST_BASE_URL;
  });
  await new Holdfast().me.get();
  assert.equal(requests[0]?.headers.authorization, "Bearer svc_test_environment");
});

test("a browser sends its own User-Agent, because the API does not allow another one", async (t) => {
  const { client, requests } = await serve(t, json({}));
  for (const name of ["document", "importScripts"]) {
    Object.assign(globalThis, { [name]: {} });
    await client()
      .me.get()
      .finally(() => Reflect.deleteProperty(globalThis, name));
    assert.doesNotMatch(`${requests.pop()?.headers["user-agent"]}`, /holdfast/);
  }
});

test("fetch can be replaced", async () => {
  const fetch = async () => Response.json({ id: "key_1" });
  assert.equal((await new Holdfast({ apiKey: "k", baseURL: "http://host.invalid/api/v1", fetch }).me.get()).id, "key_1");
});
