import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast();
const newest = await client.events.list({ limit: 1 }).page();
const last = newest.data[0]?.id ?? "";
await client.customers.create({ first_name: "Ada", email: "ada@example.com" });

// snippet stream
const stream = client.events.stream({ type: ["customer.created"] }, { lastEventId: last });
for await (const event of stream) {
  console.log(event.type);
  break; // your program continues
}
// end
