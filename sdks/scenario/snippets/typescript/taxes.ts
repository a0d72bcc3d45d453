import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast();
const customerId = process.env.CUSTOMER_ID ?? "";

// snippet invoice
const invoice = await client.invoices.create({
  customer_id: customerId,
  line_items: [
    {
      description: "Kayak tour",
      quantity: 2,
      unit_amount: { amount: 8000, currency: "USD" },
      discount_bps: 1000,
      taxes: [{ name: "Sales tax", rate: "8.875" }],
    },
    { description: "Deposit for equipment", quantity: 1, unit_amount: { amount: 5000, currency: "USD" } },
  ],
});
console.log(invoice.subtotal_amount.amount);
console.log(invoice.discount_amount.amount);
console.log(invoice.tax_amount.amount);
console.log(invoice.total_amount.amount);
// end
