import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast();
const { SERVICE_ID: serviceId = "", UNIT_ID: unitId = "" } = process.env;

// snippet days
const days = await client.availability.list({ from: "2027-07-03", to: "2027-07-04", service_id: serviceId });
for (const day of days.data) {
  console.log(day.date, day.status, day.price_from?.amount);
}
// end

// snippet explain
const explanation = await client.availability.explain({ unit_id: unitId, starts_at: "2027-07-04T09:00:00-04:00" });
console.log(explanation.available);
console.log(explanation.reason);
// end
