import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast();
const { SERVICE_ID: serviceId = "", UNIT_ID: unitId = "", PACKAGE_ID: packageId = "" } = process.env;

// snippet rule
const rule = await client.holidayRules.create({
  name: "Summer",
  date_from: "2027-07-01",
  date_to: "2027-08-31",
  multiplier_bps: 12500,
  applies_to: { service_ids: [serviceId] },
});
console.log(rule.multiplier_bps);
// end

// snippet price
const booking = await client.bookings.create({
  unit_id: unitId,
  package_id: packageId,
  event_date: "2027-07-03",
  event_start_time: "09:00",
});
console.log(booking.total_amount.amount);
console.log(booking.deposit_amount.amount);
// end
