import assert from "node:assert/strict";
import { test } from "node:test";
import { failure, json, serve, withoutBackoff } from "./server.js";

const page = (ids: string[], next: string | null) => json({ data: ids.map((id) => ({ id })), has_more: next !== null, next_cursor: next });

test("a list yields the rows of all pages with the same filters", async (t) => {
  withoutBackoff(t);
  const { client, requests } = await serve(t, page(["a", "b"], "c1"), failure(503, "unavailable"), page(["c"], "c2"), page([], null));
  const list = client().customers.list({ q: "ada", limit: 2 });
  assert.equal(requests.length, 0, "a list sends nothing before it is read");
  const ids: string[] = [];
  for await (const customer of list) ids.push(customer.id);
  assert.deepEqual(ids, ["a", "b", "c"]);
  const at = (cursor: string) => `/api/v1/customers?q=ada&limit=2${cursor}`;
  assert.deepEqual(
    requests.map(({ url }) => url),
    [at(""), at("&cursor=c1"), at("&cursor=c1"), at("&cursor=c2")],
  );
});

test("a list requests a page only when it is needed", async (t) => {
  const { client, requests } = await serve(t, page(["a", "b"], "c1"), page(["c"], null));
  for await (const { id } of client().customers.list()) if (id === "b") break;
  assert.equal(requests.length, 1);
});

test("a list ends when has_more is false", async (t) => {
  const { client, requests } = await serve(t, json({ data: [{ id: "a" }], has_more: false, next_cursor: "c1" }));
  for await (const _ of client().customers.list()) assert.ok(requests.length < 2);
  assert.equal(requests.length, 1);
});

test("one page can be read", async (t) => {
  const { client, requests } = await serve(t, page(["a"], "c1"), page(["b"], null));
  const first = await client().customers.list({ limit: 1 }).page();
  assert.deepEqual([first.data.length, first.has_more, first.next_cursor], [1, true, "c1"]);
  const { data, requestId } = await client().customers.list({ limit: 1, cursor: "c1" }).page().withResponse();
  assert.deepEqual([data.data[0]?.id, data.has_more, requestId], ["b", false, "req_1"]);
  assert.equal(requests[1]?.url, "/api/v1/customers?limit=1&cursor=c1");
});

test("pages can be iterated", async (t) => {
  const { client } = await serve(t, page(["a", "b"], "c1"), page(["c"], null));
  const sizes: number[] = [];
  for await (const { data } of client().customers.list().pages()) sizes.push(data.length);
  assert.deepEqual(sizes, [2, 1]);
});

test("an error ends the iteration", async (t) => {
  const { client } = await serve(t, page(["a"], "c1"), failure(400, "invalid_cursor"));
  const ids: string[] = [];
  await assert.rejects(
    async () => {
      for await (const { id } of client().customers.list()) ids.push(id);
    },
    { code: "invalid_cursor" },
  );
  assert.deepEqual(ids, ["a"]);
});

test("a page that repeats its cursor, or has none although more follow, ends the iteration with an error", async (t) => {
  for (const last of [page(["b"], "c1"), json({ data: [{ id: "b" }], has_more: true, next_cursor: null })]) {
    const { client, requests } = await serve(t, page(["a"], "c1"), last, page(["c"], null));
    const ids: string[] = [];
    await assert.rejects(async () => {
      for await (const row of client().bookings.list()) ids.push(row.id);
    }, /no new cursor/);
    assert.deepEqual([ids, requests.length], [["a", "b"], 2]);
  }
});
