// snippet connect
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
const booking = await client.bookings.create({
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
