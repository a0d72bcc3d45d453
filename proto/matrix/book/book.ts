// Creates a customer and a booking with the generated client, and prints the ID of the booking.
import { createBooking, createCustomer, getBooking } from "./client";
import { client } from "./client/client.gen";

client.setConfig({ baseUrl: process.env.BASE_URL!, headers: { Authorization: `Bearer ${process.env.API_KEY}` } });
const key = process.env.KEY!;

const customer = await createCustomer({
  body: { first_name: "Ada", email: "ada@example.com" },
  headers: { "Idempotency-Key": `${key}-customer` },
  throwOnError: true,
});
const booking = await createBooking({
  body: { event_date: "2030-06-01", customer_id: customer.data.id },
  headers: { "Idempotency-Key": `${key}-booking` },
  throwOnError: true,
});
const missing = await getBooking({ path: { id: "bk_00000000000000000000000000" } });
if (missing.error?.error.code !== "booking_not_found") throw new Error(JSON.stringify(missing.error));
console.log(booking.data.id);
