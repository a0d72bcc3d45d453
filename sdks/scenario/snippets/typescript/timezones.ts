import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast();

// snippet book
const local = await client.bookings.create({ event_date: "2027-07-03", event_start_time: "09:00", event_end_time: "11:00" });
console.log(local.starts_at);
console.log(local.ends_at);
const absolute = await client.bookings.create({
  starts_at: "2027-07-03T09:00:00-04:00",
  ends_at: "2027-07-03T11:00:00-04:00",
});
console.log(absolute.event_start_time);
console.log(absolute.event_end_time);
// end
