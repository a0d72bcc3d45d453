// Creates a customer and a booking with the client of orval, and prints the ID of the booking.
import axios from "axios";
import { createBooking, createCustomer, getBooking, type ErrorResponse } from "./client";

axios.defaults.baseURL = process.env.BASE_URL!;
axios.defaults.headers.common.Authorization = `Bearer ${process.env.API_KEY}`;
const key = process.env.KEY!;

const customer = await createCustomer({ first_name: "Ada", email: "ada@example.com" }, { headers: { "Idempotency-Key": `${key}-customer` } });
const booking = await createBooking({ event_date: "2030-06-01", customer_id: customer.data.id }, { headers: { "Idempotency-Key": `${key}-booking` } });
try {
  await getBooking("bk_00000000000000000000000000");
  throw new Error("a booking that does not exist was found");
} catch (error) {
  if (!axios.isAxiosError<ErrorResponse>(error) || error.response?.data.error.code !== "booking_not_found") throw error;
}
console.log(booking.data.id);
