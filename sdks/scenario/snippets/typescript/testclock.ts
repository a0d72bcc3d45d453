import { setTimeout } from "node:timers/promises";
import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast();
const unitId = process.env.UNIT_ID ?? "";

// snippet freeze
let clock = await client.testClock.set({ now: "2027-06-01T12:00:00Z" });
console.log(clock.frozen);
let booking = await client.bookings.create({
  unit_id: unitId,
  event_date: "2027-07-03",
  event_start_time: "09:00",
  event_end_time: "11:00",
  hold_minutes: 30,
});
// end

// snippet advance
clock = await client.testClock.set({ now: "2027-06-01T12:31:00Z" });
console.log(clock.frozen);
while (booking.status !== "expired") {
  await setTimeout(200);
  booking = await client.bookings.get(booking.id);
}
console.log(booking.status);
// end

// snippet unfreeze
await client.testClock.delete();
// end
