// Many clients request the availability of 31 days of a service while bookings are created on these days.

import exec from 'k6/execution';
import { Counter } from 'k6/metrics';
import { all, call, must, ok, read } from './lib/api.ts';
import { addDays, hoursOpen, makeCatalogue, retire, slot, type Catalogue } from './lib/catalogue.ts';
import { seconds, whole } from './lib/env.ts';
import type { Booking, Day, Page, Row, Slot } from './lib/types.ts';

const days = 31;
const units = 5;
const holiday = { from: 10, to: 19, multiplier: 12_500 }; // days at a higher price
const duration = `${seconds('DURATION', '30s')}s`;

const asked = new Counter('asked');
const made = new Counter('bookings_made');
const wrongPrice = new Counter('wrong_price');
const wrongSlots = new Counter('wrong_slots'); // days or slots that do not match the hours of the units
const freed = new Counter('slots_freed'); // slots that are free again in a later response
const difference = new Counter('taken_but_not_booked'); // or vice versa, at the end

export const options = {
  scenarios: {
    ask: { executor: 'constant-arrival-rate', exec: 'ask', rate: whole('RATE', 20), timeUnit: '1s', duration, preAllocatedVUs: whole('VUS', 30) },
    book: { executor: 'constant-arrival-rate', exec: 'book', rate: 10, timeUnit: '1s', duration, preAllocatedVUs: 10 },
  },
  thresholds: {
    http_req_failed: ['rate==0'],
    'http_req_duration{scenario:ask}': ['p(95)<500'],
    dropped_iterations: ['count==0'],
    asked: ['count>0'],
    bookings_made: ['count>0'],
    wrong_price: ['count==0'],
    wrong_slots: ['count==0'],
    slots_freed: ['count==0'],
    taken_but_not_booked: ['count==0'],
  },
};

interface Season {
  catalogue: Catalogue;
  rules: string[];
}

// Two rules of the highest priority, so that the prices are known regardless of the tenant's other rules.
export function setup(): Season {
  const catalogue = makeCatalogue(units);
  const rule = (from: number, to: number, multiplier_bps: number, priority: number) =>
    must<Row>({
      method: 'POST',
      path: '/holiday-rules',
      body: {
        name: catalogue.run,
        date_from: addDays(catalogue.firstDay, from),
        date_to: addDays(catalogue.firstDay, to),
        multiplier_bps,
        priority,
        applies_to: { package_ids: [catalogue.package] },
      },
    }).id;
  const rules = [rule(0, days - 1, 10_000, 1_000_000), rule(holiday.from, holiday.to, holiday.multiplier, 1_000_001)];
  return { catalogue, rules };
}

function price(c: Catalogue, day: number): number {
  const factor = day >= holiday.from && day <= holiday.to ? holiday.multiplier : 10_000;
  return (c.price.amount * factor) / 10_000;
}

function offered(c: Catalogue): Day[] {
  const path = `/availability?from=${c.firstDay}&to=${addDays(c.firstDay, days - 1)}&service_id=${c.service}`;
  return must<Page<Day>>({ method: 'GET', path }).data;
}

function taken(of: Day[]): number {
  return of.flatMap((day) => day.units.flatMap((unit) => unit.slots)).filter((s) => s.status !== 'available').length;
}

function oneHour(s: Slot): boolean {
  return Date.parse(s.ends_at) - Date.parse(s.starts_at) === 3_600_000;
}

function sane(day: Day, date: string): boolean {
  const slots = day.units.map((unit) => unit.slots);
  const hours = slots.every((of) => of.length === hoursOpen && of.every(oneHour));
  const states = slots.flat().every((s) => s.status === 'available' || s.status === 'held' || s.status === 'booked');
  const full = slots.flat().every((s) => s.status !== 'available');
  return day.date === date && day.units.length === units && hours && states && full === (day.status === 'sold_out');
}

let before = 0; // taken slots in the previous response to this client

export function ask({ catalogue: c }: Season): void {
  const answer = offered(c);
  asked.add(1);
  wrongSlots.add(answer.length === days ? 0 : 1);
  answer.forEach((day, i) => {
    wrongSlots.add(sane(day, addDays(c.firstDay, i)) ? 0 : 1);
    const shown = day.price_from;
    wrongPrice.add(shown?.amount === price(c, i) && shown.currency === c.price.currency ? 0 : 1);
  });
  const now = taken(answer);
  freed.add(Math.max(0, before - now));
  before = now;
}

// book books slots spread over all days. 37 is coprime to their number, so no slot repeats before all are used.
export function book({ catalogue: c }: Season): void {
  const wish = slot(c, (exec.scenario.iterationInTest * 37) % (units * hoursOpen * days), days);
  const a = call({ method: 'POST', path: '/bookings', body: { ...wish, status: 'confirmed' } });
  if (ok(a)) {
    const day = (Date.parse(wish.event_date) - Date.parse(c.firstDay)) / 86_400_000;
    made.add(1);
    wrongPrice.add(read<Booking>(a).total_amount.amount === price(c, day) ? 0 : 1);
  }
}

export function teardown({ catalogue: c, rules }: Season): void {
  difference.add(Math.abs(taken(offered(c)) - all<Booking>(`/bookings?service_id=${c.service}`).length));
  const off = { method: 'PATCH', name: 'PATCH /holiday-rules/{id}', body: { active: false } } as const;
  rules.forEach((rule) => call({ ...off, path: `/holiday-rules/${rule}` }));
  retire(c);
}
