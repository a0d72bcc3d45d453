// Runs the code of README.md, which scripts/snippets.mjs extracts, with a server that has a few objects.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { failure, type Handler, json, type Received, serve } from "./server.js";

const folder = fileURLToPath(new URL("snippets", import.meta.url));
const file = (name: string) => join(folder, `${name}.js`);

const booking = { id: "bk_1", object: "booking", status: "pending", version: 3, starts_at: "2030-06-01T10:00:00Z" };
const event = { id: "evt_2", object: "event", type: "booking.created", data: { object: booking, previous_attributes: {} } };
const page = (data: unknown[]) => json({ data, has_more: false, next_cursor: null });
const text =
  (type: string, body: string): Handler =>
  (response) =>
    void response.writeHead(200, { "content-type": type }).end(body);

/** The responses by method and path. */
const routes: Record<string, Handler> = {
  "POST /customers": json({ id: "cu_1" }, 201),
  "POST /bookings": (response, request) => {
    if (request.body.includes("un_1")) return failure(409, "slot_unavailable")(response, request);
    const replayed = { "idempotent-replayed": `${request.headers["idempotency-key"] === "order-4711"}` };
    return json(booking, 201, replayed)(response, request);
  },
  "GET /bookings": (response, request) =>
    (request.headers.accept === "text/csv" ? text("text/csv", "id\nbk_1\n") : page([booking, { ...booking, id: "bk_2" }]))(
      response,
      request,
    ),
  "GET /bookings/bk_1": json(booking),
  "PATCH /bookings/bk_1": failure(412, "version_mismatch"),
  "GET /customers": page([{ id: "cu_1" }]),
  "GET /availability": page([{}, {}]),
  "GET /invoices/inv_1/pdf": text("application/pdf", "%PDF-1.7"),
  "GET /events/stream": text("text/event-stream", `retry: 60000\n\nid: evt_2\ndata: ${JSON.stringify(event)}\n\n`),
  "POST /oauth/token": json({ access_token: "at2", refresh_token: "rt2", expires_in: 3600 }),
  "GET /me": json({ id: "gr_1", scopes: ["read:bookings"] }),
};

/** Starts the server. Requests without a route are 404. */
const platform = (t: TestContext) =>
  serve(t, (response, request) => {
    const route = `${request.method} ${request.url.replace("/api/v1", "").replace(/\?.*/, "")}`;
    return (routes[route] ?? failure(404, "not_found"))(response, request);
  });

interface Case {
  printed: string;
  /** The program runs until it is ended. */
  endless?: boolean;
  check?: (requests: Received[], folder: string) => void;
}

const cases: Record<string, Case> = {
  "create-a-booking": {
    printed: "bk_1 pending\n",
    check: ([, request]) =>
      assert.deepEqual(JSON.parse(request?.body ?? ""), {
        customer_id: "cu_1",
        event_date: "2030-06-01",
        event_start_time: "10:00",
        event_end_time: "12:00",
      }),
  },
  "read-lists": { printed: "bk_1\nbk_2\n1 false null\n" },
  "handle-errors": { printed: "Choose another time.\n" },
  "repeat-a-call-safely": { printed: "bk_1 true 201 req_1\n" },
  "change-only-what-you-have-read": {
    printed: "Someone else has changed the booking.\n",
    check: ([, request]) => assert.equal(request?.headers["if-match"], '"3"'),
  },
  "limit-the-time-of-a-call": { printed: "2\n" },
  "download-documents": {
    printed: "id\nbk_1\n",
    check: (_, work) => assert.equal(readFileSync(join(work, "invoice.pdf"), "utf8"), "%PDF-1.7"),
  },
  "stream-events": {
    printed: "evt_2 booking.created\n",
    endless: true,
    check: ([request]) => {
      assert.equal(decodeURIComponent(request?.url ?? ""), "/api/v1/events/stream?type=booking.created,booking.cancelled");
      assert.equal(request?.headers["last-event-id"], "evt_1");
    },
  },
  "act-for-an-operator": {
    printed: "[ 'read:bookings' ]\n",
    check: (requests, work) => {
      assert.equal(requests.at(-1)?.headers.authorization, "Bearer at2");
      assert.equal(JSON.parse(readFileSync(join(work, "tokens.json"), "utf8")).refreshToken, "rt2");
    },
  },
};

test("the README has ten snippets, and each one runs here", () => {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith(".js"))
    .map((name) => name.replace(/\.js$/, ""));
  assert.equal(names.length, 10);
  assert.deepEqual(names.sort(), [...Object.keys(cases), "receive-webhooks"].sort());
});

describe("README", { concurrency: 3 }, () => {
  for (const [name, { printed, endless = false, check }] of Object.entries(cases)) {
    test(name, async (t) => {
      const { baseURL, requests } = await platform(t);
      const work = mkdtempSync(join(tmpdir(), "holdfast-"));
      t.after(() => rmSync(work, { recursive: true }));
      writeFileSync(join(work, "tokens.json"), JSON.stringify({ refreshToken: "rt1" }));
      const env = {
        ...process.env,
        HOLDFAST_API_KEY: "svc_test_key",
        HOLDFAST_BASE_URL: baseURL,
        AUTH_URL: baseURL,
        OAUTH_CLIENT_ID: "app_1",
        LAST_EVENT_ID: "evt_1",
      };
      const child = spawn(process.execPath, [file(name)], { cwd: work, env });
      t.after(() => child.kill());
      let output = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream.on("data", (chunk) => {
          output += chunk;
          if (endless && output === printed) child.kill();
        });
      }
      const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
        child.on("close", (...result) => resolve(result)),
      );
      assert.equal(output, printed);
      assert.deepEqual([code, signal], endless ? [null, "SIGTERM"] : [0, null]);
      check?.(requests, work);
    });
  }
});

test("README: receive-webhooks", async (t) => {
  process.env.WEBHOOK_SECRET = "whsec_1";
  const { POST } = (await import(file("receive-webhooks"))) as { POST: (request: Request) => Promise<Response> };
  const log = t.mock.method(console, "log", () => {});
  const body = JSON.stringify(event);
  const time = Math.floor(Date.now() / 1000);
  const deliver = (secret: string) => {
    const v1 = createHmac("sha256", secret).update(`${time}.${body}`).digest("hex");
    return POST(new Request("http://host/hooks", { method: "POST", body, headers: { "service-signature": `t=${time},v1=${v1}` } }));
  };
  assert.equal((await deliver("whsec_1")).status, 204);
  assert.equal((await deliver("whsec_2")).status, 400);
  assert.deepEqual(
    log.mock.calls.map(({ arguments: [line] }) => line),
    ["2030-06-01T10:00:00Z"],
  );
});
