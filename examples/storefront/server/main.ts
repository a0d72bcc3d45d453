/** The server of the booking page. It keeps the operator's API key, and gives browsers only what the page needs. */
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Holdfast } from "@holdfast/sdk";
import { calendar } from "./calendar.js";
import { readSettings } from "./settings.js";
import { type OrderInput, Shop, ShopError } from "./shop.js";

/** The largest body that is read, in bytes. */
const MAX_BODY = 16 * 1024;

const settings = readSettings(process.env);
const shop = new Shop(new Holdfast({ apiKey: settings.apiKey, baseURL: settings.baseURL, deadline: 20_000 }), settings.apiKey);

const root = new URL("../../", import.meta.url);
const files: Record<string, { path: string; type: string }> = {
  "/": { path: "public/index.html", type: "text/html" },
  "/style.css": { path: "public/style.css", type: "text/css" },
  "/app.js": { path: "build/browser/app.js", type: "text/javascript" },
  "/texts.js": { path: "build/browser/texts.js", type: "text/javascript" },
};

/** Stripe.js calls these hosts. A script at another address, such as the local stand-in, only calls its own. */
const stripe = settings.stripeJs.origin;
const stripeHosts =
  stripe === "https://js.stripe.com"
    ? "connect-src 'self' https://api.stripe.com; frame-src https://js.stripe.com https://hooks.stripe.com; img-src https://*.stripe.com"
    : `connect-src 'self' ${stripe}`;
const headers = {
  "Content-Security-Policy": `default-src 'none'; script-src 'self' ${stripe}; style-src 'self'; ${stripeHosts}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
  "Referrer-Policy": "same-origin",
  "X-Content-Type-Options": "nosniff",
  "Cache-Control": "no-store",
};

type Handler = (request: IncomingMessage, url: URL) => Promise<{ status?: number; type?: string; body: string | Buffer; name?: string }>;

const json = (value: unknown, status = 200) => ({ status, type: "application/json", body: JSON.stringify(value) });

const handlers: Record<string, Handler> = {
  "GET /shop": async () =>
    json({ ...(await shop.catalogue()), stripe_js: settings.stripeJs.href, publishable_key: settings.publishableKey }),
  "GET /times": async (_, url) => json(await shop.times(parameter(url, "day"), parameter(url, "package"))),
  "POST /orders": async (request) => json(await shop.book(orderInput(await readBody(request))), 201),
  "GET /order": async (_, url) => json(await shop.order(parameter(url, "token"))),
  "GET /booking.ics": async (_, url) => {
    const order = await shop.order(parameter(url, "token"));
    return { type: "text/calendar", name: `${order.number}.ics`, body: calendar(order, (await shop.catalogue()).business) };
  },
};

function parameter(url: URL, name: string): string {
  const value = url.searchParams.get(name);
  if (!value) throw new ShopError(422, "invalid", name);
  return value;
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  // A page of another origin cannot send this type without asking first.
  if (request.headers["content-type"] !== "application/json") throw new ShopError(415, "invalid");
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_BODY) throw new ShopError(413, "invalid");
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw new ShopError(400, "invalid");
  }
}

/** Checks that each field is a text. The API checks the rest. */
function orderInput(body: unknown): OrderInput {
  const given = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const text = (name: string): string => {
    const value = given[name];
    if (typeof value !== "string" || value.trim() === "") throw new ShopError(422, "invalid", name);
    return value.trim();
  };
  const order = text("order");
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(order)) throw new ShopError(422, "invalid", "order");
  return {
    order,
    package_id: text("package_id"),
    unit_id: text("unit_id"),
    starts_at: text("starts_at"),
    first_name: text("first_name"),
    email: text("email"),
  };
}

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const url = new URL(request.url ?? "/", "http://storefront");
    const file = request.method === "GET" ? files[url.pathname] : undefined;
    const handler = handlers[`${request.method} ${url.pathname}`];
    if (!file && !handler) throw new ShopError(404, "not_found");
    const {
      status = 200,
      type,
      body,
      name,
    } = file ? { type: file.type, body: await readFile(new URL(file.path, root)) } : await (handler as Handler)(request, url);
    const download = name ? { "Content-Disposition": `attachment; filename="${name}"` } : {};
    response.writeHead(status, { ...headers, ...download, "Content-Type": `${type}; charset=utf-8` }).end(body);
  } catch (error) {
    const known = error instanceof ShopError ? error : new ShopError(503, "unavailable");
    if (known !== error) console.error(error);
    const text = JSON.stringify({ code: known.code, field: known.field });
    response.writeHead(known.status, { ...headers, "Content-Type": "application/json; charset=utf-8" }).end(text);
  }
}

const server = createServer({ headersTimeout: 5_000, requestTimeout: 10_000 }, (request, response) => void respond(request, response));
server.listen(settings.port, settings.host, () => {
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : settings.port;
  console.log(`the storefront is on http://${settings.host}:${port}`);
});
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    server.close();
    server.closeIdleConnections();
  });
}
