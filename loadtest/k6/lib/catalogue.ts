// A separate service for each run, with units and a package, so that runs do not conflict with each other or with existing data, and
// the requests of an operator's website.

import exec from 'k6/execution';
import type { Booking, Money, Tenant } from '../../../sdks/typescript/src/types.gen.ts';
import { call, get, must, ok, post, read, type Answer } from './api.ts';

export interface Catalogue {
  run: string; // marks all resources of the run
  service: string;
  units: string[];
  package: string;
  price: Money;
  firstDay: string;
}

const firstHour = 9;
export const hoursOpen = 8; // one slot per hour

// addDays counts dates, so it does not depend on a time zone.
export function addDays(date: string, days: number): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
}

function create(path: string, body: object): string {
  return must<Booking>(post(path, body)).id;
}

export function makeCatalogue(units: number): Catalogue {
  const run = `load-${Date.now().toString(36)}${Math.floor(Math.random() * 1e6).toString(36)}`;
  const price = { amount: 10_000, currency: get<Tenant>('/tenant').currency };
  const service = create('/services', { name: run, duration_minutes: 60 });
  const open = [`0${firstHour}:00`, `${firstHour + hoursOpen}:00`];
  const opening_hours = Object.fromEntries(['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'].map((day) => [day, [open]]));
  const unit = (_: unknown, i: number) => create('/units', { name: `${run} ${i}`, service_ids: [service], opening_hours });
  const offer = { name: run, service_id: service, base_price: price, deposit_type: 'percentage', deposit_value: 2500 };
  const firstDay = addDays(new Date().toISOString().slice(0, 10), 10);
  return { run, service, units: Array.from({ length: units }, unit), package: create('/packages', offer), price, firstDay };
}

// slot returns the body of a booking of the n-th slot: unit by unit, then hour by hour, then day by day. It starts over after `days`.
export function slot(c: Catalogue, n: number, days: number) {
  const hour = Math.floor(n / c.units.length);
  return {
    unit_id: c.units[n % c.units.length],
    package_id: c.package,
    event_date: addDays(c.firstDay, Math.floor(hour / hoursOpen) % days),
    event_start_time: `${String(firstHour + (hour % hoursOpen)).padStart(2, '0')}:00`,
  };
}

// retire deactivates the created resources. The bookings stay.
export function retire(c: Catalogue): void {
  call({ method: 'PATCH', path: `/packages/${c.package}`, body: { active: false } });
  call({ method: 'PATCH', path: `/services/${c.service}`, body: { active: false } });
  c.units.forEach((unit) => call({ method: 'PATCH', path: `/units/${unit}`, body: { status: 'retired' } }));
}

const visitDays = 60;
const visit = { customer: '', booking: '' }; // state of this user
let next = 0;

function keep(a: Answer, as: keyof typeof visit): Answer {
  if (ok(a)) {
    visit[as] = read<Booking>(a).id;
  }
  return a;
}

// steps are a customer, a booking, its changes, and lists in between.
const steps: ((c: Catalogue, n: number) => Answer)[] = [
  (c, n) => keep(call(post('/customers', { first_name: 'Load', email: `${c.run}-${n}@example.com` }, `${c.run}-${n}`)), 'customer'),
  (c, n) => keep(call(post('/bookings', { ...slot(c, n, visitDays), customer_id: visit.customer }, `${c.run}-${n}`)), 'booking'),
  () => call({ method: 'GET', path: `/bookings/${visit.booking}` }),
  (c) => call({ method: 'GET', path: `/bookings?service_id=${c.service}` }),
  (c, n) => call({ method: 'PATCH', path: `/bookings/${visit.booking}`, body: { status: 'confirmed' }, idempotencyKey: `${c.run}-${n}` }),
  (c, n) => {
    const unit = slot(c, n, visitDays).unit_id;
    return call({ method: 'GET', path: `/availability?from=${c.firstDay}&to=${addDays(c.firstDay, 6)}&unit_id=${unit}` });
  },
  () => call({ method: 'GET', path: `/bookings/${visit.booking}?expand=customer`, name: 'GET /bookings/{id}?expand=customer' }),
  () => call({ method: 'GET', path: '/customers' }),
  () => call({ method: 'GET', path: `/customers/${visit.customer}` }),
  (c, n) => call(post(`/bookings/${visit.booking}/cancel`, { reason: 'load' }, `${c.run}-${n}`)),
];

// step makes this user's next request. After a refusal, the user starts over.
export function step(c: Catalogue): Answer {
  const a = steps[next]!(c, exec.scenario.iterationInTest);
  next = ok(a) ? (next + 1) % steps.length : 0;
  return a;
}
