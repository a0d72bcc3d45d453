// Deposits by card, many in parallel: each intent is requested twice with one key, is paid once, confirms its booking, and is
// partially refunded.

import { sleep } from 'k6';
import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';
import http from 'k6/http';
import { all, call, must, ok, read, together, type Call } from './lib/api.ts';
import { makeCatalogue, retire, slot, type Catalogue } from './lib/catalogue.ts';
import { cardGateway, seconds, whole } from './lib/env.ts';
import type { Booking, Intent, Refund, Row } from './lib/types.ts';

const rate = whole('RATE', 5);
const duration = seconds('DURATION', '30s');
const days = 200;
const patience = 50; // polls, 0.2 s apart, until a payment or a refund reaches its booking
const part = 500; // refunded amount of each deposit

const completed = new Counter('completed');
const twice = new Counter('not_one_intent'); // requests with one key that returned different intents
const unpaid = new Counter('left_unpaid'); // bookings that do not show their deposit as paid and are not confirmed
const unrefunded = new Counter('left_unrefunded');
const differs = new Counter('amount_differs'); // bookings whose payments do not match their intents
const paying = new Trend('paid_duration', true); // from the confirmation of the card payment to the confirmed booking

export const options = {
  scenarios: {
    pay: { executor: 'constant-arrival-rate', rate, timeUnit: '1s', duration: `${duration}s`, preAllocatedVUs: whole('VUS', 40) },
  },
  thresholds: {
    http_req_failed: ['rate==0'],
    dropped_iterations: ['count==0'],
    completed: [`count>=${Math.floor(0.99 * rate * duration)}`],
    not_one_intent: ['count==0'],
    left_unpaid: ['count==0'],
    left_unrefunded: ['count==0'],
    amount_differs: ['count==0'],
    paid_duration: ['p(95)<3000'],
  },
};

const gateway = cardGateway();

export function setup(): Catalogue {
  return makeCatalogue(20);
}

// post returns a request of the n-th iteration. An iteration uses one API key, because an Idempotency-Key belongs to an API key.
function post(n: number, path: string, idempotencyKey: string, body: object): Call {
  return { method: 'POST', path, name: `POST ${path}`, body, idempotencyKey, key: n };
}

function look(id: string): Booking {
  return must<Booking>({ method: 'GET', path: `/bookings/${id}`, name: 'GET /bookings/{id}' });
}

// settle polls a booking until it has the expected state.
function settle(id: string, done: (b: Booking) => boolean): boolean {
  let booking = look(id);
  for (let left = patience; left > 0 && !done(booking); left--) {
    sleep(0.2);
    booking = look(id);
  }
  return done(booking);
}

export default function (c: Catalogue): void {
  const n = exec.scenario.iterationInTest;
  const tag = `${c.run}-${n}`;
  const booking = must<Booking>(post(n, '/bookings', `${tag}-booking`, { ...slot(c, n, days), metadata: { run: c.run } }));
  const deposit = booking.deposit_amount.amount;

  const create = post(n, '/payment-intents', `${tag}-intent`, { booking_id: booking.id, amount_minor: deposit });
  const [first, second] = together([create, create]);
  if (!first || !second || !ok(first) || !ok(second)) {
    return;
  }
  const intent = read<Intent>(first);
  if (first.body !== second.body) {
    twice.add(1);
  }

  const began = Date.now();
  const card = { key: gateway.key, client_secret: intent.client_secret ?? '', payment_method: 'pm_card_visa' };
  http.post(`${gateway.url}/v1/payment_intents/${intent.id}/confirm`, card, { tags: { name: 'confirmation at the gateway' } });
  if (!settle(booking.id, (b) => b.status === 'confirmed' && b.payment_status === 'deposit_paid' && b.amount_paid.amount === deposit)) {
    unpaid.add(1);
    return;
  }
  paying.add(Date.now() - began);

  const refund = post(n, '/refunds', `${tag}-refund`, { payment_intent_id: intent.id, amount_minor: part, reason: 'requested_by_customer' });
  const made = must<Refund>(refund);
  if (read<Refund>(call(refund)).id !== made.id) {
    twice.add(1);
  }
  if (!settle(booking.id, (b) => b.amount_refunded.amount === part)) {
    unrefunded.add(1);
    return;
  }
  completed.add(1);
}

// Checks that bookings show the amounts that their intents received and refunded.
export function teardown(c: Catalogue): void {
  const intents = new Map<string, Intent[]>();
  for (const intent of all<Intent>(`/payment-intents?created_after=${new Date(Date.now() - 2 * 3_600_000).toISOString()}`)) {
    intents.set(intent.booking_id, [...(intents.get(intent.booking_id) ?? []), intent]);
  }
  for (const booking of all<Booking & Row>(`/bookings?metadata[run]=${c.run}`)) {
    const own = intents.get(booking.id) ?? [];
    const received = own.reduce((sum, i) => sum + i.amount_received, 0);
    const refunded = own.reduce((sum, i) => sum + i.amount_refunded, 0);
    if (own.length !== 1 || received !== booking.amount_paid.amount || refunded !== booking.amount_refunded.amount) {
      differs.add(1);
    }
  }
  retire(c);
}
