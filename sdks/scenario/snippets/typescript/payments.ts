import { setTimeout } from "node:timers/promises";
import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast();
const booking = await client.bookings.create({
  unit_id: process.env.UNIT_ID ?? "",
  package_id: process.env.PACKAGE_ID ?? "",
  event_date: "2027-07-03",
  event_start_time: "09:00",
});

// snippet intent
let intent = await client.paymentIntents.create({ booking_id: booking.id, amount_minor: booking.deposit_amount.amount });
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

// snippet wait
while (intent.status !== "succeeded") {
  await setTimeout(1000);
  intent = await client.paymentIntents.get(intent.id);
}
console.log(intent.status);
// end

// snippet refund
const refund = await client.refunds.create({
  payment_intent_id: intent.id,
  amount_minor: 500,
  reason: "requested_by_customer",
});
console.log(refund.amount);
// end

// snippet cash
const handedBack = await client.refunds.create({
  booking_id: booking.id,
  amount_minor: 300,
  method: "cash",
  reference: "receipt-7",
  reason: "requested_by_customer",
});
console.log(handedBack.method, handedBack.reference);
// end
