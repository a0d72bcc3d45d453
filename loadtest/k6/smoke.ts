// One user makes one pass through all features. Suitable to run after each deployment.

import { check, sleep } from 'k6';
import { Counter } from 'k6/metrics';
import { all, call, must, ok, read, refusal, type Answer } from './lib/api.ts';
import { makeCatalogue, retire, slot, type Catalogue } from './lib/catalogue.ts';
import type { Booking, Customer, Day, Event, Explanation, Page } from './lib/types.ts';

const finished = new Counter('finished'); // stays 0 if an iteration is interrupted

export const options = {
  vus: 1,
  iterations: 1,
  thresholds: { checks: ['rate==1'], finished: ['count==1'] },
};

export function setup(): Catalogue {
  return makeCatalogue(1);
}

export default function (c: Catalogue): void {
  check(call({ method: 'GET', path: '/me' }), { 'the key is known': ok });
  check(call({ method: 'GET', path: '/nothing' }), { 'an unknown path is 404 not_found': (a) => refused(a, 404, 'not_found') });

  customers(c);
  events(bookings(c));
  finished.add(1);
}

// events waits for events, which arrive through Kafka with a delay.
function events(booking: string): void {
  const seen = () => all<Event>(`/events?object_id=${booking}`).reverse().map((e) => e.type).join(' ');
  let types = seen();
  for (let left = 50; left > 0 && !types.endsWith('booking.cancelled'); left--) {
    sleep(0.2);
    types = seen();
  }
  check(types, { 'each change has one event': (t) => t === 'booking.created booking.updated booking.cancelled' });
}

function refused(a: Answer, status: number, code: string): boolean {
  return a.status === status && refusal(a) === code;
}

function customers(c: Catalogue): void {
  const body = { first_name: 'Ada', email: `${c.run}@example.com` };
  const make = { method: 'POST', path: '/customers', body, idempotencyKey: c.run, key: 0 } as const;
  const first = call(make);
  const again = call(make);
  check(first, { 'a customer is created': (a) => a.status === 201 });
  check(again, {
    'the same key answers the same bytes': (a) => a.status === 201 && a.body === first.body,
    'and says that it is a replay': (a) => a.headers['Idempotent-Replayed'] === 'true',
  });
  const other = call({ ...make, body: { ...body, first_name: 'Eve' } });
  check(other, { 'the same key with another body is 422': (a) => refused(a, 422, 'idempotency_mismatch') });

  const { id } = read<Customer>(first);
  check(call({ method: 'PATCH', path: `/customers/${id}`, body: { first_name: 'Grace' } }), { 'it is changed': ok });
  const found = must<Page<Customer>>({ method: 'GET', path: `/customers?email=${c.run}@example.com` });
  check(found, { 'it is found, once and changed': (p) => p.data.length === 1 && p.data[0]?.first_name === 'Grace' });
  check(call({ method: 'POST', path: '/customers', body: { first_name: 'Ada' } }), { 'a field that lacks is 422': (a) => a.status === 422 });
}

function bookings(c: Catalogue): string {
  const wish = slot(c, 0, 1);
  const days = must<Page<Day>>({ method: 'GET', path: `/availability?from=${c.firstDay}&to=${c.firstDay}&service_id=${c.service}` });
  const offered = days.data[0]?.units[0]?.slots[0];
  check(days.data[0], {
    'the day is open': (d) => d?.status === 'available' && offered?.status === 'available',
    'it has a price': (d) => d?.price_from !== null,
  });

  const made = call({ method: 'POST', path: '/bookings', body: wish });
  check(made, { 'a booking is made': (a) => a.status === 201 });
  const booking = read<Booking>(made);
  check(booking, {
    'at the price that was shown': (b) => b.total_amount.amount === days.data[0]?.price_from?.amount,
    'with a quarter as deposit': (b) => b.deposit_amount.amount * 4 === b.total_amount.amount,
    'at the time that was shown': (b) => b.starts_at === offered?.starts_at,
  });
  const second = call({ method: 'POST', path: '/bookings', body: wish });
  check(second, { 'a second one is 409 slot_unavailable': (a) => refused(a, 409, 'slot_unavailable') });
  check(call({ method: 'PATCH', path: `/bookings/${booking.id}`, body: { status: 'confirmed' } }), { 'it is confirmed': ok });

  const explain = { method: 'GET', path: `/availability/explain?unit_id=${wish.unit_id}&starts_at=${offered?.starts_at}` } as const;
  check(must<Explanation>(explain), { 'the slot is booked': (e) => !e.available && e.reason === 'booked' });
  check(call({ method: 'POST', path: `/bookings/${booking.id}/cancel`, body: { reason: 'smoke' } }), { 'it is cancelled': ok });
  check(must<Explanation>(explain), { 'the slot is free again': (e) => e.available });
  return booking.id;
}

export function teardown(c: Catalogue): void {
  retire(c);
}
