import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast();
const since = process.env.SINCE ?? "";

// snippet iterate
let n = 0;
for await (const customer of client.customers.list({ q: process.env.RUN ?? "", limit: 2 })) {
  if (customer.id) n++;
}
console.log(n);
// end

// snippet sync
let newest = since;
for await (const customer of client.customers.list({ sort: "updated_at", updated_after: since, limit: 100 })) {
  newest = customer.updated_at; // store the customer, then continue here the next time
}
console.log(newest > "2026");
// end
