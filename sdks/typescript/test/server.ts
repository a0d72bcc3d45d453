// A local server whose responses a test determines.
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { type ClientOptions, Holdfast } from "@holdfast/sdk";

/** A request that the server received. */
export interface Received {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Writes the response to a request. */
export type Handler = (response: ServerResponse, request: Received) => void | Promise<void>;

/** Responds with JSON. */
export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Handler {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", "x-request-id": "req_1", ...headers });
    response.end(JSON.stringify(body));
  };
}

/** Responds with an error of the API. */
export function failure(status: number, code: string, headers: Record<string, string> = {}): Handler {
  const error = {
    type: "api_error",
    code,
    message: `It is ${code}.`,
    request_id: "req_1",
    doc_url: `https://example.com/docs/errors#${code}`,
  };
  return json({ error }, status, headers);
}

/** Closes the connection without a response. */
export const cut: Handler = (response) => {
  response.destroy();
};

/** Closes the connection in the middle of the body. */
export const cutBody: Handler = (response) => {
  response.writeHead(201, { "content-type": "application/json", "content-length": "1000" });
  response.write('{"id":"bk_1",');
  setTimeout(() => response.destroy(), 5);
};

/** Never responds. */
export const hang: Handler = () => {};

/** Starts a server that uses the handlers one after the other, and the last one for all further requests. */
export async function serve(t: TestContext, ...handlers: Handler[]) {
  const requests: Received[] = [];
  const server = createServer(async (incoming, response) => {
    const { method = "", url = "", headers } = incoming;
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const request = { method, url, headers, body: Buffer.concat(chunks).toString() };
    requests.push(request);
    const handler = handlers[Math.min(requests.length, handlers.length) - 1];
    await handler?.(response, request);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const baseURL = `http://127.0.0.1:${port}/api/v1`;
  const client = (options: ClientOptions = {}) => new Holdfast({ apiKey: "svc_test_key", baseURL, ...options });
  return { baseURL, requests, client };
}

/** Replaces the random part of back-off by 0, so that retries are immediate. */
export function withoutBackoff(t: TestContext): void {
  t.mock.method(Math, "random", () => 0);
}
