import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { Holdfast, SignatureError, webhooks } from "@holdfast/sdk";

let secret = "";
let deliver: (email: string | null) => void = () => {};

// snippet receive
async function receive(request: IncomingMessage, response: ServerResponse) {
  try {
    const event = await webhooks.unwrap(await buffer(request), request.headers, secret);
    if (event.type === "customer.created") deliver(event.data.object.email); // hand it to your own queue, then respond
    response.writeHead(204).end();
  } catch (error) {
    if (!(error instanceof SignatureError)) throw error;
    response.writeHead(400).end("invalid signature");
  }
}
// end

const client = new Holdfast();
const server = createServer((request, response) => void receive(request, response));
await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
const { port } = server.address() as AddressInfo;
const endpoint = await client.webhookEndpoints.create({ url: `http://127.0.0.1:${port}/hooks`, event_types: ["customer.created"] });
secret = endpoint.secret;
const delivered = new Promise<void>((done) => {
  deliver = (email) => void (email === "receiver@example.com" && done());
});
await client.customers.create({ first_name: "Ada", email: "receiver@example.com" });
await delivered;
console.log("receiver@example.com");
await client.webhookEndpoints.delete(endpoint.id);
server.closeAllConnections();
server.close();
