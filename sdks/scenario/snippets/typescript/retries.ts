import { randomUUID } from "node:crypto";
import { Holdfast, VersionMismatch } from "@holdfast/sdk";

const client = new Holdfast();
const order = `order-${randomUUID()}`;

// snippet key
const create = () => client.bookings.create({ event_date: "2027-07-03" }, { idempotencyKey: order }).withResponse();
const first = await create();
const second = await create();
console.log(first.replayed ? 1 : 0);
console.log(second.replayed ? 1 : 0);
// end

// snippet version
const booking = second.data;
const updated = await client.bookings.update(booking.id, { guest_count: 2 }, { ifMatch: booking.version });
console.log(updated.version);
try {
  await client.bookings.update(booking.id, { guest_count: 3 }, { ifMatch: booking.version });
} catch (error) {
  if (!(error instanceof VersionMismatch)) throw error;
  console.log(error.code);
}
// end
