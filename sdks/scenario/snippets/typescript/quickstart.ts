// snippet connect
import { setTimeout } from "node:timers/promises";
import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast(); // reads HOLDFAST_BASE_URL and HOLDFAST_API_KEY
const tenant = await client.tenant.get();
console.log(tenant.timezone);
console.log(tenant.currency);
// end

// snippet catalogue
const service = await client.services.create({ name: "Kayak tour", duration_minutes: 120 });
const unit = await client.units.create({
  name: "Kayak 1",
  service_ids: [service.id],
  opening_hours: { sat: [["09:00", "17:00"]] },
});
const offer = await client.packages.create({
  name: "Two hours",
  service_id: service.id,
  base_price: { amount: 8000, currency: "USD" },
  deposit_type: "percentage",
  deposit_value: 2500,
});
// end

// snippet availability
const days = await client.availability.list({ from: "2027-07-03", to: "2027-07-03", unit_id: unit.id });
for (const slot of days.data[0]?.units[0]?.slots ?? []) {
  console.log(slot.starts_at, slot.status);
}
// end

// snippet book
const customer = await client.customers.create({ first_name: "Ada", last_name: "Lovelace", email: "ada@example.com" });
let booking = await client.bookings.create({
  customer_id: customer.id,
  unit_id: unit.id,
  package_id: offer.id,
  event_date: "2027-07-03",
  event_start_time: "09:00",
});
console.log(booking.status);
console.log(booking.total_amount.amount);
console.log(booking.deposit_amount.amount);
// end

// snippet intent
const intent = await client.paymentIntents.create({ booking_id: booking.id, amount_minor: booking.deposit_amount.amount });
console.log(intent.status);
// end

// snippet confirm
const response = await fetch(`${process.env.STRIPE_URL}/v1/payment_intents/${intent.id}/confirm`, {
  method: "POST",
  body: new URLSearchParams({
    key: process.env.STRIPE_PUBLISHABLE_KEY ?? "",
    client_secret: intent.client_secret ?? "",
    payment_method: "pm_card_visa",
  }),
});
const confirmed = (await response.json()) as { status: string };
console.log(confirmed.status);
// end

// snippet event
const find = () => client.events.list({ type: ["payment.succeeded"], object_id: intent.id }).page();
let events = await find();
for (let tries = 0; events.data.length === 0 && tries < 30; tries++) {
  await setTimeout(1000);
  events = await find();
}
const [event] = events.data;
if (event?.type === "payment.succeeded") console.log(event.type, event.data.object.amount);
// end

// snippet paid
for (let tries = 0; booking.payment_status === "unpaid" && tries < 30; tries++) {
  await setTimeout(1000);
  booking = await client.bookings.get(booking.id);
}
console.log(booking.payment_status);
// end
