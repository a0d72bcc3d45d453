import { writeFile } from "node:fs/promises";
import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast();
const { CUSTOMER_ID: customerId = "", UNIT_ID: unitId = "", PACKAGE_ID: packageId = "" } = process.env;

// snippet quote
const draft = await client.quotes.create({
  customer_id: customerId,
  unit_id: unitId,
  package_id: packageId,
  event_date: "2027-07-03",
  event_start_time: "09:00",
});
const sent = await client.quotes.send(draft.id);
console.log(sent.status);
// end

// snippet accept
const accepted = await client.quotes.accept(sent.id);
console.log(accepted.status);
const invoice = await client.invoices.get(accepted.invoice_ids[0] ?? "");
console.log(invoice.kind);
console.log(invoice.status);
console.log(invoice.amount_due.amount);
// end

// snippet pay
const paid = await client.invoices.recordPayment(invoice.id, { amount: { amount: 2000, currency: "USD" }, method: "cash" });
console.log(paid.status);
const pdf = await client.invoices.getPdf(invoice.id);
await writeFile("invoice.pdf", new Uint8Array(await pdf.arrayBuffer()));
// end
