import { APIError, Holdfast, SlotUnavailable } from "@holdfast/sdk";

const client = new Holdfast();
const unitId = process.env.UNIT_ID ?? "";

// snippet handle
for (let attempt = 0; attempt < 2; attempt++) {
  try {
    const booking = await client.bookings.create({
      unit_id: unitId,
      event_date: "2027-07-03",
      event_start_time: "09:00",
      event_end_time: "11:00",
    });
    console.log(booking.status);
  } catch (error) {
    if (!(error instanceof SlotUnavailable)) throw error;
    console.log(error.code); // offer another time
  }
}
// end

// snippet fields
try {
  await client.customers.create({ first_name: "Ada", email: "ada" });
} catch (error) {
  if (!(error instanceof APIError)) throw error;
  console.log(error.code);
  console.log(error.param);
}
// end
