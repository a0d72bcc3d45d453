// Creates a customer and a booking with the client of typescript-fetch, and prints the ID of the booking.
import { BookingsApi, Configuration, CustomersApi, ErrorResponseFromJSON, ResponseError } from "./client";

// accessToken would be sent without Bearer, because the operations accept OAuth too.
const configuration = new Configuration({ basePath: process.env.BASE_URL!, headers: { Authorization: `Bearer ${process.env.API_KEY}` } });
const key = process.env.KEY!;

const customer = await new CustomersApi(configuration).createCustomer({
  idempotencyKey: `${key}-customer`,
  customerCreate: { firstName: "Ada", email: "ada@example.com" },
});
const bookings = new BookingsApi(configuration);
const booking = await bookings.createBooking({
  idempotencyKey: `${key}-booking`,
  bookingCreate: { eventDate: "2030-06-01", customerId: customer.id ?? null },
});
try {
  await bookings.getBooking({ id: "bk_00000000000000000000000000" });
  throw new Error("a booking that does not exist was found");
} catch (error) {
  if (!(error instanceof ResponseError)) throw error;
  const { error: body } = ErrorResponseFromJSON(await error.response.json());
  if (body.code !== "booking_not_found") throw error;
}
console.log(booking.id);
