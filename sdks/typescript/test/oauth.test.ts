import assert from "node:assert/strict";
import { test } from "node:test";
import { OAuthError, OAuthTokenSource, type Tokens } from "@holdfast/sdk";
import { cut, failure, type Handler, json, serve, withoutBackoff } from "./server.js";

const tokens = (n: number): Handler =>
  json({ access_token: `at${n}`, token_type: "bearer", expires_in: 3600, refresh_token: `rt${n}`, scope: "read:bookings" });

/** Returns a source whose token endpoint has the handlers. */
async function source(t: import("node:test").TestContext, initial: Partial<Tokens>, ...handlers: Handler[]) {
  const server = await serve(t, ...handlers);
  const stored: Tokens[] = [];
  const tokenSource = new OAuthTokenSource({
    tokenURL: `${server.baseURL}/oauth/token`,
    clientId: "app_1",
    tokens: { refreshToken: "rt0", ...initial },
    store: (fresh) => void stored.push(fresh),
  });
  return { tokenSource, stored, requests: server.requests };
}

test("a valid access token is used as it is", async (t) => {
  const { tokenSource, requests } = await source(t, { accessToken: "at0", expiresAt: Date.now() + 120_000 }, tokens(1));
  assert.equal(await tokenSource.token(), "at0");
  assert.equal(requests.length, 0);
});

test("an access token that expires soon is refreshed once for all calls", async (t) => {
  const { tokenSource, stored, requests } = await source(t, { accessToken: "at0", expiresAt: Date.now() + 30_000 }, tokens(1), tokens(2));
  const before = Date.now();
  assert.deepEqual(await Promise.all([tokenSource.token(), tokenSource.token(), tokenSource.token()]), ["at1", "at1", "at1"]);
  assert.equal(requests.length, 1);
  assert.deepEqual(Object.fromEntries(new URLSearchParams(requests[0]?.body)), {
    grant_type: "refresh_token",
    client_id: "app_1",
    refresh_token: "rt0",
  });
  assert.equal(requests[0]?.headers["content-type"], "application/x-www-form-urlencoded");
  const [first] = stored;
  assert.deepEqual([first?.accessToken, first?.refreshToken, first?.scope], ["at1", "rt1", "read:bookings"]);
  assert.ok(first && first.expiresAt >= before + 3_600_000 && first.expiresAt <= Date.now() + 3_600_000);
  assert.equal(await tokenSource.token("at1"), "at2");
  assert.equal(new URLSearchParams(requests[1]?.body).get("refresh_token"), "rt1");
  assert.equal(await tokenSource.token("at1"), "at2", "it has already been replaced");
  assert.equal(requests.length, 2);
});

test("a call refreshes a token that the API rejects, and is repeated with the same key", async (t) => {
  const { tokenSource } = await source(t, { accessToken: "at0" }, tokens(1));
  const api = await serve(t, failure(401, "expired_credential"), json({ id: "bk_1" }, 201), failure(401, "expired_credential"));
  const client = api.client({ apiKey: undefined, tokenSource, maxRetries: 0 });
  assert.equal((await client.bookings.create({})).id, "bk_1");
  assert.deepEqual(
    api.requests.map(({ headers }) => headers.authorization),
    ["Bearer at0", "Bearer at1"],
  );
  assert.equal(api.requests[0]?.headers["idempotency-key"], api.requests[1]?.headers["idempotency-key"]);
  await assert.rejects(async () => client.me.get(), { code: "expired_credential" });
  assert.equal(api.requests.length, 4, "a call refreshes the token once");
});

test("an API key is not refreshed", async (t) => {
  const { client, requests } = await serve(t, failure(401, "expired_credential"));
  await assert.rejects(async () => client().me.get(), { code: "expired_credential" });
  assert.equal(requests.length, 1);
});

test("new tokens are stored before they are used", async (t) => {
  const server = await serve(t, tokens(1), tokens(2));
  const steps: string[] = [];
  let fail = true;
  const tokenSource = new OAuthTokenSource({
    tokenURL: server.baseURL,
    clientId: "app_1",
    tokens: { refreshToken: "rt0" },
    store: async ({ refreshToken }) => {
      await new Promise((resolve) => setTimeout(resolve, 10));
      if (fail) throw new Error("disk full");
      steps.push(`stored ${refreshToken}`);
    },
  });
  await assert.rejects(tokenSource.token(), /disk full/);
  fail = false;
  steps.push(`used ${await tokenSource.token()}`);
  assert.deepEqual(steps, ["stored rt1", "used at1"]);
  assert.equal(server.requests.length, 1, "tokens that were not stored are not refreshed again");
});

test("the end of a grant is an error with its code", async (t) => {
  const { tokenSource, requests } = await source(t, {}, json({ error: "invalid_grant", error_description: "The grant has ended." }, 400));
  await assert.rejects(tokenSource.token(), (error) => {
    assert.ok(error instanceof OAuthError);
    assert.deepEqual([error.code, error.message], ["invalid_grant", "The grant has ended."]);
    return true;
  });
  assert.equal(requests.length, 1);
});

test("a refresh is not repeated, because a refresh token that is sent twice ends the grant", async (t) => {
  withoutBackoff(t);
  const busy = json({ error: "temporarily_unavailable" }, 503, { "retry-after": "0" });
  for (const handler of [cut, busy]) {
    const { tokenSource, requests } = await source(t, {}, handler, tokens(1));
    const api = await serve(t, json({}));
    await assert.rejects(async () => api.client({ apiKey: undefined, tokenSource }).me.get());
    assert.deepEqual([requests.length, api.requests.length], [1, 0]);
  }
});

test("a refresh continues if the call that started it is canceled", async (t) => {
  const controller = new AbortController();
  const slow: Handler = (response, request) => {
    controller.abort(new Error("canceled"));
    setTimeout(() => tokens(1)(response, request), 20);
  };
  const { tokenSource, stored, requests } = await source(t, {}, slow, tokens(2));
  const api = await serve(t, json({}));
  const client = api.client({ apiKey: undefined, tokenSource });
  await assert.rejects(async () => client.me.get({ signal: controller.signal }), /canceled/);
  assert.equal(stored.length, 0);
  assert.equal(await tokenSource.token(), "at1");
  assert.deepEqual([requests.length, stored.length], [1, 1]);
});
