// One user makes one pass through all features. Suitable to run after each deployment.

import { check } from 'k6';
import { Counter } from 'k6/metrics';
import type { AvailabilityDay, AvailabilityExplanation } from '../../sdks/typescript/src/types.gen.ts';
import type { Booking, Customer } from '../../sdks/typescript/src/types.gen.ts';
import type { Answer, Event, Page } from './lib/api.ts';
import { all, call, get, ok, patch, post, read, refusal, until } from './lib/api.ts';
import { makeCatalogue, slot, type Catalogue } from './lib/catalogue.ts';

const finished = new Counter('finished'); // stays 0 if an iteration is interrupted

export const options = { vus: 1, iterations: 1, thresholds: { checks: ['rate==1'], finished: ['count==1'] } };

export const setup = () => makeCatalogue(1);
export { retire as teardown } from './lib/catalogue.ts';

export default function (c: Catalogue): void {
  check(call({ method: 'GET', path: '/me' }), { 'the key is known': ok });
  const nothing = call({ method: 'GET', path: '/nothing' });
  check(nothing, { 'an unknown path is 404 not_found': (a) => refused(a, 404, 'not_found') });
  customers(c);
  const booking = bookings(c);
  // Events arrive through Kafka with a delay.
  const seen = () => all<Event>(`/events?object_id=${booking}`).reverse().map((e) => e.type).join(' ');
  const types = until(seen, (t) => t.endsWith('booking.cancelled'));
  check(types, { 'each change has one event': (t) => t === 'booking.created booking.updated booking.cancelled' });
  finished.add(1);
}

function refused(a: Answer, status: number, code: string): boolean {
  return a.status === status && refusal(a) === code;
}

function customers(c: Catalogue): void {
  const body = { first_name: 'Ada', email: `${c.run}@example.com` };
  const first = call(post('/customers', body, c.run, 0));
  check(first, { 'a customer is created': (a) => a.status === 201 });
  check(call(post('/customers', body, c.run, 0)), {
    'the same key answers the same bytes': (a) => a.status === 201 && a.body === first.body,
    'and says that it is a replay': (a) => a.headers['Idempotent-Replayed'] === 'true',
  });
  const other = call(post('/customers', { ...body, first_name: 'Eve' }, c.run, 0));
  check(other, { 'the same key with another body is 422': (a) => refused(a, 422, 'idempotency_mismatch') });

  const { id } = read<Customer>(first);
  check(call(patch(`/customers/${id}`, { first_name: 'Grace' })), { 'it is changed': ok });
  const found = get<Page<Customer>>(`/customers?email=${c.run}@example.com`);
  check(found, { 'it is found, once and changed': (p) => p.data.length === 1 && p.data[0]?.first_name === 'Grace' });
  check(call(post('/customers', { first_name: 'Ada' })), { 'a field that lacks is 422': (a) => a.status === 422 });
}

function bookings(c: Catalogue): string {
  const wish = slot(c, 0, 1);
  const path = `/availability?from=${c.firstDay}&to=${c.firstDay}&service_id=${c.service}`;
  const [day] = get<Page<AvailabilityDay>>(path).data;
  const offered = day?.units[0]?.slots[0];
  check(day, {
    'the day is open': (d) => d?.status === 'available' && offered?.status === 'available',
    'it has a price': (d) => d?.price_from !== null,
  });
  const made = call(post('/bookings', wish));
  check(made, { 'a booking is made': (a) => a.status === 201 });
  const booking = read<Booking>(made);
  check(booking, {
    'at the price that was shown': (b) => b.total_amount.amount === day?.price_from?.amount,
    'with a quarter as deposit': (b) => b.deposit_amount.amount * 4 === b.total_amount.amount,
    'at the time that was shown': (b) => b.starts_at === offered?.starts_at,
  });
  const second = call(post('/bookings', wish));
  check(second, { 'a second one is 409 slot_unavailable': (a) => refused(a, 409, 'slot_unavailable') });
  check(call(patch(`/bookings/${booking.id}`, { status: 'confirmed' })), { 'it is confirmed': ok });
  const explain = `/availability/explain?unit_id=${wish.unit_id}&starts_at=${offered?.starts_at}`;
  check(get<AvailabilityExplanation>(explain), { 'the slot is booked': (e) => !e.available && e.reason === 'booked' });
  check(call(post(`/bookings/${booking.id}/cancel`, { reason: 'smoke' })), { 'it is cancelled': ok });
  check(get<AvailabilityExplanation>(explain), { 'the slot is free again': (e) => e.available });
  return booking.id;
}
