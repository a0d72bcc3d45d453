import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast();

// snippet register
const endpoint = await client.webhookEndpoints.create({
  url: "https://app.example/hooks",
  event_types: ["booking.created", "payment.succeeded"],
});
console.log(endpoint.status);
const secret = endpoint.secret; // the only response with the secret
// end

if (!secret.startsWith("whsec_")) throw new Error("no secret");
await client.webhookEndpoints.delete(endpoint.id);
