// Checks that requests go through the proxies of the environment, with a proxy that opens tunnels.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { type TestContext, test } from "node:test";
import { Holdfast, OAuthTokenSource } from "@holdfast/sdk";
import { EnvHttpProxyAgent } from "undici";
import { failure, json, serve } from "./server.js";

/** Starts a proxy whose tunnels all end at a server, and puts it into the environment. Returns the targets of its tunnels. */
async function tunnels(t: TestContext, baseURL: string, noProxy: string): Promise<string[]> {
  const targets: string[] = [];
  const { hostname, port } = new URL(baseURL);
  const proxy = createServer((_, response) => void response.writeHead(405).end());
  proxy.on("connect", ({ url = "" }, client) => {
    targets.push(url);
    const server = connect(Number(port), hostname, () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      client.pipe(server).pipe(client);
    });
    server.on("error", () => client.destroy());
    client.on("error", () => server.destroy());
    t.after(() => server.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  for (const [name, value] of Object.entries({ HTTP_PROXY: address, HTTPS_PROXY: address, NO_PROXY: noProxy })) {
    const { [name]: before } = process.env;
    process.env[name] = value;
    t.after(() => {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    });
  }
  t.after(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return targets;
}

test("requests and refreshes go through the proxy of the environment", async (t) => {
  const token = json({ access_token: "at_1", refresh_token: "rt_2", expires_in: 3600 });
  const { baseURL, requests } = await serve(t, token, json({ id: "tn_1" }), json({ id: "bk_1" }, 201));
  const targets = await tunnels(t, baseURL, "");
  const dispatcher = new EnvHttpProxyAgent();
  t.after(() => dispatcher.close());
  const tokenSource = new OAuthTokenSource({
    tokenURL: "http://auth.invalid/oauth/token",
    clientId: "app_1",
    tokens: { refreshToken: "rt_1" },
    store: () => {},
    dispatcher,
  });
  const client = new Holdfast({ tokenSource, baseURL: "http://api.invalid/api/v1", dispatcher });
  assert.equal((await client.tenant.get()).id, "tn_1");
  assert.equal((await client.bookings.create({})).id, "bk_1");
  assert.deepEqual([...new Set(targets)], ["auth.invalid:80", "api.invalid:80"]);
  assert.equal(requests.length, 3);
  assert.equal(requests[1]?.headers.authorization, "Bearer at_1");
});

test("a tunnel for https leads to the host of the base URL", async (t) => {
  const { baseURL } = await serve(t, failure(400, "malformed_request"));
  const targets = await tunnels(t, baseURL, "");
  const dispatcher = new EnvHttpProxyAgent();
  t.after(() => dispatcher.close());
  const client = new Holdfast({ apiKey: "k", baseURL: "https://api.invalid/api/v1", dispatcher, maxRetries: 0 });
  await assert.rejects(async () => client.me.get()); // the server speaks no TLS
  assert.deepEqual(targets, ["api.invalid:443"]);
});

test("NO_PROXY and a client without a dispatcher send requests directly", async (t) => {
  const { baseURL, client } = await serve(t, json({ id: "tn_1" }));
  const targets = await tunnels(t, baseURL, "127.0.0.1");
  const dispatcher = new EnvHttpProxyAgent();
  t.after(() => dispatcher.close());
  assert.equal((await client({ dispatcher }).tenant.get()).id, "tn_1");
  process.env.NO_PROXY = "";
  assert.equal((await client().tenant.get()).id, "tn_1");
  assert.deepEqual(targets, []);
});
