// Changes at a constant rate, an endpoint that receives their events, and a check of the delivery log afterwards.

import { sleep } from 'k6';
import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';
import { all, call, must, ok } from './lib/api.ts';
import { receiverURL, seconds, whole } from './lib/env.ts';
import type { Customer, Delivery, Event, Row } from './lib/types.ts';

const receiver = receiverURL();
const rate = whole('RATE', 50);
const duration = seconds('DURATION', '20s');
const patience = 30; // polls, one second apart, until the last delivery has ended

const changes = new Counter('changes');
const delivered = new Counter('delivered');
const lost = new Counter('not_one_event'); // changes without exactly one event
const undelivered = new Counter('not_delivered_once'); // events without exactly one delivery, or whose delivery did not succeed
const pending = new Counter('left_pending');
const delay = new Trend('change_to_first_attempt', true);

export const options = {
  teardownTimeout: '10m',
  scenarios: {
    change: { executor: 'constant-arrival-rate', rate, timeUnit: '1s', duration: `${duration}s`, preAllocatedVUs: whole('VUS', 30) },
  },
  thresholds: {
    http_req_failed: ['rate==0'],
    dropped_iterations: ['count==0'],
    changes: [`count>=${Math.floor(0.99 * rate * duration)}`],
    delivered: [`count>=${Math.floor(0.99 * rate * duration)}`],
    not_one_event: ['count==0'],
    not_delivered_once: ['count==0'],
    left_pending: ['count==0'],
    change_to_first_attempt: ['p(99)<1000'],
  },
};

export function setup(): Row {
  const body = { url: receiver, event_types: ['customer.created'], max_in_flight: 100, max_per_second: 5000 };
  return must<Row>({ method: 'POST', path: '/webhook-endpoints', body });
}

export default function (endpoint: Row): void {
  const body = { first_name: 'Hook', email: `hook-${exec.scenario.iterationInTest}@example.com`, metadata: { run: endpoint.id } };
  if (ok(call({ method: 'POST', path: '/customers', body }))) {
    changes.add(1);
  }
}

// group groups rows by a key.
function group<T>(rows: T[], key: (row: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  rows.forEach((row) => groups.set(key(row), [...(groups.get(key(row)) ?? []), row]));
  return groups;
}

// Trace contains the results of one change: one event and one delivery if all is correct.
interface Trace {
  events: Event[];
  deliveries: Delivery[];
}

function traces(endpoint: Row, made: Customer[]): Trace[] {
  // One minute earlier, in case the services' clocks differ.
  const since = new Date(Date.parse(endpoint.created_at) - 60_000).toISOString();
  const events = group(all<Event>(`/events?type=customer.created&created_after=${since}`), (e) => e.data.object.id);
  const list = `/webhook-endpoints/${endpoint.id}/deliveries`;
  const deliveries = group(all<Delivery>(list, 'GET /webhook-endpoints/{id}/deliveries'), (d) => d.event_id);
  return made.map((customer) => {
    const mine = events.get(customer.id) ?? [];
    return { events: mine, deliveries: mine.flatMap((e) => deliveries.get(e.id) ?? []) };
  });
}

function ended(t: Trace): boolean {
  return t.deliveries.length > 0 && t.deliveries.every((d) => d.status === 'succeeded' || d.status === 'failed');
}

function judge(t: Trace): void {
  pending.add(t.deliveries.filter((d) => d.status === 'pending' || d.status === 'delivering').length);
  const [event, ...others] = t.events;
  if (!event || others.length > 0) {
    lost.add(1);
    return;
  }
  const [delivery, ...copies] = t.deliveries;
  const attempt = delivery?.attempts[0];
  if (!attempt || copies.length > 0 || delivery.status !== 'succeeded') {
    undelivered.add(1);
    return;
  }
  delivered.add(1);
  delay.add(Date.parse(attempt.at) - Date.parse(event.created_at));
}

export function teardown(endpoint: Row): void {
  const made = all<Customer>(`/customers?metadata[run]=${endpoint.id}`);
  let followed = traces(endpoint, made);
  for (let left = patience; left > 0 && !followed.every(ended); left--) {
    sleep(1);
    followed = traces(endpoint, made);
  }
  followed.forEach(judge);
  call({ method: 'DELETE', path: `/webhook-endpoints/${endpoint.id}`, name: 'DELETE /webhook-endpoints/{id}' });
}
