// A separate service for each run, with units and a package, so that runs do not conflict with each other or with
// existing data, and the requests of an operator's website.

import exec from 'k6/execution';
import type { Booking, Money, Tenant } from '../../../sdks/typescript/src/types.gen.ts';
import { call, get, must, ok, patch, post, read, type Answer } from './api.ts';

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
  const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
  const hours = { opening_hours: Object.fromEntries(weekdays.map((day) => [day, [open]])) };
  const unit = (_: unknown, i: number) => create('/units', { name: `${run} ${i}`, service_ids: [service], ...hours });
  const offer = { name: run, service_id: service, base_price: price, deposit_type: 'percentage', deposit_value: 2500 };
  const firstDay = addDays(new Date().toISOString().slice(0, 10), 10);
  const made = Array.from({ length: units }, unit);
  return { run, service, units: made, package: create('/packages', offer), price, firstDay };
}

// slot returns the body of a booking of the n-th slot: unit by unit, then hour by hour, then day by day. It starts over
// after `days`.
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
  call(patch(`/packages/${c.package}`, { active: false }));
  call(patch(`/services/${c.service}`, { active: false }));
  c.units.forEach((unit) => call(patch(`/units/${unit}`, { status: 'retired' })));
}

const visitDays = 60;
const visit = { customer: '', booking: '' }; // state of this user
let next = 0;

// keep creates a resource and keeps its id.
function keep(as: keyof typeof visit, path: string, body: object, key: string): Answer {
  const a = call(post(path, body, key));
  if (ok(a)) {
    visit[as] = read<Booking>(a).id;
  }
  return a;
}

// steps are a customer, a booking, its changes, and lists in between.
const steps: ((c: Catalogue, n: number, key: string) => Answer)[] = [
  (_c, _n, key) => keep('customer', '/customers', { first_name: 'Load', email: `${key}@example.com` }, key),
  (c, n, key) => keep('booking', '/bookings', { ...slot(c, n, visitDays), customer_id: visit.customer }, key),
  () => call({ method: 'GET', path: `/bookings/${visit.booking}` }),
  (c) => call({ method: 'GET', path: `/bookings?service_id=${c.service}` }),
  (_c, _n, key) => call(patch(`/bookings/${visit.booking}`, { status: 'confirmed' }, key)),
  (c, n) => {
    const week = `from=${c.firstDay}&to=${addDays(c.firstDay, 6)}`;
    return call({ method: 'GET', path: `/availability?${week}&unit_id=${slot(c, n, visitDays).unit_id}` });
  },
  () => call({ method: 'GET', path: `/bookings/${visit.booking}?expand=customer` }),
  () => call({ method: 'GET', path: '/customers' }),
  () => call({ method: 'GET', path: `/customers/${visit.customer}` }),
  (_c, _n, key) => call(post(`/bookings/${visit.booking}/cancel`, { reason: 'load' }, key)),
];

// step makes this user's next request. After a refusal, the user starts over.
export function step(c: Catalogue): Answer {
  const n = exec.scenario.iterationInTest;
  const a = steps[next]!(c, n, `${c.run}-${n}`);
  next = ok(a) ? (next + 1) % steps.length : 0;
  return a;
}
