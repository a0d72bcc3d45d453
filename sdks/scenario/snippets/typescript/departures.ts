import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast();

// snippet tour
const service = await client.services.create({ name: "Seal tour", duration_minutes: 90 });
const unit = await client.units.create({
  name: "Puffin",
  booking_mode: "seats",
  capacity: 10,
  service_ids: [service.id],
  opening_hours: { sat: [["10:00", "16:00"]], sun: [["10:00", "16:00"]] },
});
const seat = await client.packages.create({
  name: "Seat",
  service_id: service.id,
  pricing: "per_guest",
  base_price: { amount: 4500, currency: "USD" },
});
// end

// snippet book
const booking = await client.bookings.create({
  unit_id: unit.id,
  package_id: seat.id,
  event_date: "2027-07-03",
  event_start_time: "10:00",
  guest_count: 2,
});
console.log(booking.status);
console.log(booking.total_amount.amount);
// end

// snippet seats
const explanation = await client.availability.explain({
  unit_id: unit.id,
  starts_at: "2027-07-03T10:00:00-04:00",
});
console.log(explanation.available);
console.log(explanation.seats?.capacity, explanation.seats?.taken, explanation.seats?.available);
// end
