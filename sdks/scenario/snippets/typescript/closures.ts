import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast();
const unitId = process.env.UNIT_ID ?? "";

// snippet days
const closure = await client.closures.create({
  name: "Winter break",
  unit_ids: [unitId],
  date_from: "2027-12-24",
  date_to: "2028-01-01",
});
console.log(closure.starts_at);
console.log(closure.ends_at);
// end

// snippet change
const longer = await client.closures.update(closure.id, { date_to: "2028-01-03" });
console.log(longer.ends_at);
// end
