// Many clients request the availability of 31 days of a service while bookings are created on these days.

import exec from 'k6/execution';
import { Counter } from 'k6/metrics';
import type { AvailabilityDay, AvailabilitySlot, Booking } from '../../sdks/typescript/src/types.gen.ts';
import { all, call, get, must, ok, patch, post, read, type Page } from './lib/api.ts';
import { addDays, hoursOpen, makeCatalogue, retire, slot, type Catalogue } from './lib/catalogue.ts';
import { arrivals, calm, none, seconds, whole } from './lib/env.ts';

const days = 31;
const units = 5;
const holiday = { from: 10, to: 19, multiplier: 12_500 }; // days at a higher price
const duration = seconds('DURATION', '30s');

const asked = new Counter('asked');
const made = new Counter('bookings_made');
const wrongPrice = new Counter('wrong_price');
const wrongSlots = new Counter('wrong_slots'); // days or slots that do not match the hours of the units
const freed = new Counter('slots_freed'); // slots that are free again in a later response
const difference = new Counter('taken_but_not_booked'); // or vice versa, at the end

export const options = {
  scenarios: {
    ask: arrivals(whole('RATE', 20), duration, whole('VUS', 30), 'ask'),
    book: arrivals(10, duration, 10, 'book'),
  },
  thresholds: {
    ...calm,
    ...none('wrong_price', 'wrong_slots', 'slots_freed', 'taken_but_not_booked'),
    'http_req_duration{scenario:ask}': ['p(95)<500'],
    asked: ['count>0'],
    bookings_made: ['count>0'],
  },
};

interface Season {
  catalogue: Catalogue;
  rules: string[];
}

// Two rules of the highest priority, so that the prices are known regardless of the tenant's other rules.
export function setup(): Season {
  const c = makeCatalogue(units);
  const rule = (from: number, to: number, multiplier_bps: number, priority: number) => {
    const on = { date_from: addDays(c.firstDay, from), date_to: addDays(c.firstDay, to) };
    const body = { name: c.run, ...on, multiplier_bps, priority, applies_to: { package_ids: [c.package] } };
    return must<Booking>(post('/holiday-rules', body)).id;
  };
  const rules = [rule(0, days - 1, 10_000, 1_000_000), rule(holiday.from, holiday.to, holiday.multiplier, 1_000_001)];
  return { catalogue: c, rules };
}

function price(c: Catalogue, day: number): number {
  return (c.price.amount * (day >= holiday.from && day <= holiday.to ? holiday.multiplier : 10_000)) / 10_000;
}

function offered(c: Catalogue): AvailabilityDay[] {
  const path = `/availability?from=${c.firstDay}&to=${addDays(c.firstDay, days - 1)}&service_id=${c.service}`;
  return get<Page<AvailabilityDay>>(path).data;
}

const free = (s: AvailabilitySlot) => s.status === 'available';

function taken(of: AvailabilityDay[]): number {
  return of.flatMap((day) => day.units.flatMap((unit) => unit.slots)).filter((s) => !free(s)).length;
}

function sane(day: AvailabilityDay, date: string): boolean {
  const slots = day.units.flatMap((unit) => unit.slots);
  const hours = slots.every((s) => Date.parse(s.ends_at) - Date.parse(s.starts_at) === 3_600_000);
  const states = slots.every((s) => ['available', 'held', 'booked'].includes(s.status));
  const whole = day.units.length === units && day.units.every((unit) => unit.slots.length === hoursOpen);
  return day.date === date && whole && hours && states && !slots.some(free) === (day.status === 'sold_out');
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
  const a = call(post('/bookings', { ...wish, status: 'confirmed' }));
  if (ok(a)) {
    const day = (Date.parse(wish.event_date) - Date.parse(c.firstDay)) / 86_400_000;
    made.add(1);
    wrongPrice.add(read<Booking>(a).total_amount.amount === price(c, day) ? 0 : 1);
  }
}

export function teardown({ catalogue: c, rules }: Season): void {
  difference.add(Math.abs(taken(offered(c)) - all<Booking>(`/bookings?service_id=${c.service}`).length));
  rules.forEach((rule) => call(patch(`/holiday-rules/${rule}`, { active: false })));
  retire(c);
}
