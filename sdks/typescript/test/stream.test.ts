import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { type AnyEvent, ConnectionError, type EventStream } from "@holdfast/sdk";
import { cut, failure, type Handler, json, serve, withoutBackoff } from "./server.js";

const event = (id: string, type = "booking.created") => ({
  id,
  object: "event",
  type,
  data: { object: { id: "bk_1" }, previous_attributes: {} },
});
const message = (id: string, type?: string) =>
  `id: ${id}\nevent: ${type ?? "booking.created"}\ndata: ${JSON.stringify(event(id, type))}\n\n`;
const events = (...ids: string[]) => json({ data: ids.map((id) => event(id)), has_more: false, next_cursor: null });
const none = events();

/** Sends the chunks, with a time of 1 ms to reconnect. It then ends the stream, unless `end` does something else. */
function stream(chunks: (string | Uint8Array)[], end = (response: ServerResponse) => void response.end()): Handler {
  return async (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("retry: 1\n\n");
    for (const chunk of chunks) {
      response.write(chunk);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    end(response);
  };
}

/** Reads events until there are enough. */
async function take(list: EventStream<AnyEvent>, n: number): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of list) {
    ids.push(id);
    if (ids.length === n) break;
  }
  return ids;
}

test("a stream continues after its last event when it ends or breaks", async (t) => {
  const { client, requests } = await serve(
    t,
    events("e0"),
    stream([message("e1"), message("e2")]),
    stream([message("e3"), "id: e4\ndata: {"], (response) => void response.destroy()),
    stream([message("e4")]),
  );
  const list = client().events.stream({ type: ["booking.created", "booking.cancelled"] });
  assert.equal(requests.length, 0);
  assert.deepEqual(await take(list, 4), ["e1", "e2", "e3", "e4"]);
  assert.equal(list.lastEventId, "e4");
  assert.deepEqual(
    requests.map(({ headers }) => headers["last-event-id"]),
    [undefined, "e0", "e2", "e3"],
  );
  assert.equal(decodeURIComponent(requests[0]?.url ?? ""), "/api/v1/events?type=booking.created,booking.cancelled&limit=1");
  assert.equal(decodeURIComponent(requests[1]?.url ?? ""), "/api/v1/events/stream?type=booking.created,booking.cancelled");
  assert.equal(requests[1]?.headers.accept, "text/event-stream");
});

test("a stream can start after an event", async (t) => {
  const { client, requests } = await serve(t, stream([message("e8")]));
  assert.deepEqual(await take(client().events.stream({}, { lastEventId: "e7" }), 1), ["e8"]);
  assert.deepEqual(
    requests.map(({ headers }) => headers["last-event-id"]),
    ["e7"],
  );
});

test("no event is lost if there was none when the stream started", async (t) => {
  const { client, requests } = await serve(t, none, stream([]), none, stream([]), events("e1"), stream([message("e2")]));
  assert.deepEqual(await take(client().events.stream(), 2), ["e1", "e2"]);
  assert.deepEqual(
    requests.map(({ url, headers }) => [url, headers["last-event-id"]]),
    [
      ["/api/v1/events?limit=1", undefined],
      ["/api/v1/events/stream", undefined],
      ["/api/v1/events?limit=1&sort=updated_at", undefined],
      ["/api/v1/events/stream", undefined],
      ["/api/v1/events?limit=1&sort=updated_at", undefined],
      ["/api/v1/events/stream", "e1"],
    ],
  );
});

test("messages are read as the HTML standard says", async (t) => {
  const bytes = new TextEncoder().encode(message("e1").replace("bk_1", "Zoë"));
  const [first, second] = [bytes.slice(0, bytes.length - 44), bytes.slice(bytes.length - 44)];
  const { client } = await serve(
    t,
    stream([
      first,
      second,
      ": still here\n\n",
      'id: e2\r\ndata: {\r\ndata:  "id": "e2"\r',
      "\ndata: }\r\n\r\n",
      `data:${JSON.stringify(event("e3"))}\r\runknown: x\n\nretry\n\n`,
      message("e4", "booking.teleported"),
    ]),
  );
  const list: AnyEvent[] = [];
  for await (const e of client().events.stream({}, { lastEventId: "e0" })) if (list.push(e) === 4) break;
  assert.deepEqual(
    list.map(({ id }) => id),
    ["e1", "e2", "e3", "e4"],
  );
  assert.deepEqual(list[0]?.data.object, { id: "Zoë" });
  assert.equal(list[3]?.type, "booking.teleported");
});

test("a stream that is silent for too long reconnects", async (t) => {
  const { client, requests } = await serve(
    t,
    stream([message("e1")], () => {}),
    stream([message("e2")]),
  );
  const errors: unknown[] = [];
  const list = client().events.stream({}, { lastEventId: "e0", idleTimeout: 50, onReconnect: (error) => errors.push(error) });
  assert.deepEqual(await take(list, 2), ["e1", "e2"]);
  assert.equal(requests[1]?.headers["last-event-id"], "e1");
  assert.equal(errors.length, 1);
  assert.ok(errors[0] instanceof ConnectionError && /50 ms/.test(errors[0].message));
});

test("a stream waits until the server is back", async (t) => {
  withoutBackoff(t);
  const down = Array.from({ length: 7 }, (_, i) => (i % 2 ? cut : failure(503, "unavailable")));
  const { client } = await serve(t, stream([message("e1")]), ...down, stream([message("e2")]));
  assert.deepEqual(await take(client().events.stream({}, { lastEventId: "e0" }), 2), ["e1", "e2"]);
});

test("a stream ends after maxRetries failures in a row", async (t) => {
  withoutBackoff(t);
  const down = failure(503, "unavailable");
  const { client, requests } = await serve(t, stream([]), down, down, stream([message("e1")]), down, down, down, stream([message("e2")]));
  const list = client().events.stream({}, { lastEventId: "e0", maxRetries: 2 });
  await assert.rejects(take(list, 2), { code: "unavailable" });
  assert.equal(requests.length, 7);
  assert.equal(list.lastEventId, "e1");
});

test("a stream that the server rejects fails", async (t) => {
  withoutBackoff(t);
  const rejected = await serve(t, stream([message("e1")]), failure(401, "revoked_credential"));
  await assert.rejects(take(rejected.client().events.stream({}, { lastEventId: "e0" }), 2), { code: "revoked_credential" });
  const page = await serve(t, (response) => void response.end("<html>"));
  await assert.rejects(take(page.client().events.stream({}, { lastEventId: "e0" }), 1), /not an event stream/);
  const late = await serve(t, failure(503, "unavailable", { "retry-after": "61" }));
  await assert.rejects(take(late.client().events.stream({}, { lastEventId: "e0" }), 1), { code: "unavailable" });
});

test("leaving the loop closes the connection", async (t) => {
  let closed = () => {};
  const closing = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const open = stream([message("e1")], () => {});
  const { client } = await serve(t, (response, request) => open(response.on("close", closed), request));
  await take(client().events.stream({}, { lastEventId: "e0" }), 1);
  await closing;
});

test("a signal ends a stream", async (t) => {
  const { client } = await serve(
    t,
    stream([message("e1")], () => {}),
  );
  const controller = new AbortController();
  const reason = new Error("shutdown");
  await assert.rejects(async () => {
    for await (const _ of client().events.stream({}, { lastEventId: "e0", signal: controller.signal })) {
      setTimeout(() => controller.abort(reason), 10);
    }
  }, reason);
  await assert.rejects(take(client().events.stream({}, { lastEventId: "e0", signal: controller.signal }), 1), reason);
});
