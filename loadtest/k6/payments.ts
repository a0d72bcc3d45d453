// Deposits by card, many in parallel: each intent is requested twice with one key, is paid once, confirms its booking,
// and is partially refunded.

import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';
import http from 'k6/http';
import type { Booking, PaymentIntent, Refund } from '../../sdks/typescript/src/types.gen.ts';
import { all, call, get, must, ok, post, read, together, until } from './lib/api.ts';
import { makeCatalogue, retire, slot, type Catalogue } from './lib/catalogue.ts';
import { arrivals, calm, nearly, none, required, seconds, whole } from './lib/env.ts';

const rate = whole('RATE', 5);
const duration = seconds('DURATION', '30s');
const part = 500; // refunded amount of each deposit

const completed = new Counter('completed');
const twice = new Counter('not_one_intent'); // requests with one key that returned different intents
const unpaid = new Counter('left_unpaid'); // bookings that do not show their deposit as paid and are not confirmed
const unrefunded = new Counter('left_unrefunded');
const differs = new Counter('amount_differs'); // bookings whose payments do not match their intents
const paying = new Trend('paid_duration', true); // from the confirmation of the card payment to the confirmed booking

export const options = {
  scenarios: { pay: arrivals(rate, duration, whole('VUS', 40)) },
  thresholds: {
    ...calm,
    ...none('not_one_intent', 'left_unpaid', 'left_unrefunded', 'amount_differs'),
    completed: nearly(rate, duration),
    paid_duration: ['p(95)<3000'],
  },
};

// The stand-in for Stripe, which accepts no real cards, and the key with which a browser confirms payments.
const stripe = required('STRIPE_URL', 'the stand-in for Stripe, as in http://127.0.0.1:12111').replace(/\/+$/, '');
const publishable = required('STRIPE_PUBLISHABLE_KEY', 'the publishable key of the tenant\'s account');

export const setup = () => makeCatalogue(20);

// settle polls a booking until it has the expected state.
function settle(id: string, done: (b: Booking) => boolean): boolean {
  return done(until(() => get<Booking>(`/bookings/${id}`), done));
}

// An iteration uses one API key, because an Idempotency-Key belongs to an API key.
export default function (c: Catalogue): void {
  const n = exec.scenario.iterationInTest;
  const send = (path: string, body: object) => post(path, body, `${c.run}-${n}${path}`, n);
  const booking = must<Booking>(send('/bookings', { ...slot(c, n, 200), metadata: { run: c.run } }));
  const deposit = booking.deposit_amount.amount;

  const create = send('/payment-intents', { booking_id: booking.id, amount_minor: deposit });
  const [first, second] = together([create, create]);
  if (!first || !second || !ok(first) || !ok(second)) {
    return;
  }
  const intent = read<PaymentIntent>(first);
  twice.add(first.body === second.body ? 0 : 1);

  const began = Date.now();
  const card = { key: publishable, client_secret: intent.client_secret ?? '', payment_method: 'pm_card_visa' };
  http.post(`${stripe}/v1/payment_intents/${intent.id}/confirm`, card, { tags: { name: 'confirmation at Stripe' } });
  const paid = (b: Booking) => b.payment_status === 'deposit_paid' && b.amount_paid.amount === deposit;
  if (!settle(booking.id, (b) => b.status === 'confirmed' && paid(b))) {
    unpaid.add(1);
    return;
  }
  paying.add(Date.now() - began);

  const reason = 'requested_by_customer';
  const refund = send('/refunds', { payment_intent_id: intent.id, amount_minor: part, reason });
  const made = must<Refund>(refund);
  twice.add(read<Refund>(call(refund)).id === made.id ? 0 : 1);
  if (!settle(booking.id, (b) => b.amount_refunded.amount === part)) {
    unrefunded.add(1);
    return;
  }
  completed.add(1);
}

// Checks that bookings show the amounts that their intents received and refunded.
export function teardown(c: Catalogue): void {
  const since = new Date(Date.now() - 2 * 3_600_000).toISOString();
  const intents = all<PaymentIntent>(`/payment-intents?created_after=${since}`);
  for (const booking of all<Booking>(`/bookings?metadata[run]=${c.run}`)) {
    const own = intents.filter((i) => i.booking_id === booking.id);
    const received = own.reduce((sum, i) => sum + i.amount_received, 0);
    const refunded = own.reduce((sum, i) => sum + i.amount_refunded, 0);
    const equal = received === booking.amount_paid.amount && refunded === booking.amount_refunded.amount;
    differs.add(own.length === 1 && equal ? 0 : 1);
  }
  retire(c);
}
