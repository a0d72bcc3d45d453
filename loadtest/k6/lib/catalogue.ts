// A separate service for each run, with units and a package, so that runs do not conflict with each other or with existing data.

import { call, must } from './api.ts';
import type { Money, Row, Tenant } from './types.ts';

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
const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

const dayMs = 86_400_000;

// addDays counts dates, so it does not depend on a time zone.
export function addDays(date: string, days: number): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + days * dayMs).toISOString().slice(0, 10);
}

export function makeCatalogue(units: number): Catalogue {
  const run = `load-${Date.now().toString(36)}${Math.floor(Math.random() * 1e6).toString(36)}`;
  const { currency } = must<Tenant>({ method: 'GET', path: '/tenant' });
  const price = { amount: 10_000, currency };
  const service = must<Row>({ method: 'POST', path: '/services', body: { name: run, duration_minutes: 60 } }).id;
  const open = [`0${firstHour}:00`, `${firstHour + hoursOpen}:00`];
  const opening_hours = Object.fromEntries(weekdays.map((day) => [day, [open]]));
  const made: string[] = [];
  for (let i = 0; i < units; i++) {
    made.push(must<Row>({ method: 'POST', path: '/units', body: { name: `${run} ${i}`, service_ids: [service], opening_hours } }).id);
  }
  const offer = { name: run, service_id: service, base_price: price, deposit_type: 'percentage', deposit_value: 2500 };
  const pkg = must<Row>({ method: 'POST', path: '/packages', body: offer }).id;
  return { run, service, units: made, package: pkg, price, firstDay: addDays(new Date().toISOString().slice(0, 10), 10) };
}

// slot returns the body of a booking of the n-th slot: unit by unit, then hour by hour, then day by day. It starts over after
// `days`.
export function slot(c: Catalogue, n: number, days: number) {
  const hour = Math.floor(n / c.units.length);
  const day = Math.floor(hour / hoursOpen) % days;
  return {
    unit_id: c.units[n % c.units.length],
    package_id: c.package,
    event_date: addDays(c.firstDay, day),
    event_start_time: `${String(firstHour + (hour % hoursOpen)).padStart(2, '0')}:00`,
  };
}

// retire deactivates the created resources. The bookings stay.
export function retire(c: Catalogue): void {
  const off = (path: string, name: string, body: object) => call({ method: 'PATCH', path, name, body });
  off(`/packages/${c.package}`, 'PATCH /packages/{id}', { active: false });
  off(`/services/${c.service}`, 'PATCH /services/{id}', { active: false });
  c.units.forEach((unit) => off(`/units/${unit}`, 'PATCH /units/{id}', { status: 'retired' }));
}
