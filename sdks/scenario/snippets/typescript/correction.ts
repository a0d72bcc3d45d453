import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast();
const invoiceId = process.env.INVOICE_ID ?? "";

// snippet part
const note = await client.invoices.createCreditNote(invoiceId, {
  amount: { amount: 3000, currency: "USD" },
  reason: "One kayak less",
});
console.log(note.status);
console.log(note.total_amount.amount);
// end

// snippet rest
const rest = await client.invoices.createCreditNote(invoiceId, { reason: "Wrong date" });
console.log(rest.total_amount.amount);
const invoice = await client.invoices.get(invoiceId);
console.log(invoice.status);
console.log(invoice.amount_credited.amount);
console.log(invoice.amount_due.amount);
// end
