// Changes at a constant rate, an endpoint that receives their events, and a check of the delivery log afterwards.

import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';
import type { Customer, Delivery, WebhookEndpoint } from '../../sdks/typescript/src/types.gen.ts';
import { all, call, must, ok, post, until, type Event } from './lib/api.ts';
import { arrivals, calm, nearly, none, required, seconds, whole } from './lib/env.ts';

const receiver = required('RECEIVER_URL', 'where webhooks are sent; it answers 200 to every POST');
const rate = whole('RATE', 50);
const duration = seconds('DURATION', '20s');

const changes = new Counter('changes');
const delivered = new Counter('delivered');
const lost = new Counter('not_one_event'); // changes without exactly one event
const undelivered = new Counter('not_delivered_once'); // events without exactly one successful delivery
const pending = new Counter('left_pending');
const delay = new Trend('change_to_first_attempt', true);

export const options = {
  teardownTimeout: '10m',
  scenarios: { change: arrivals(rate, duration, whole('VUS', 30)) },
  thresholds: {
    ...calm,
    ...none('not_one_event', 'not_delivered_once', 'left_pending'),
    changes: nearly(rate, duration),
    delivered: nearly(rate, duration),
    change_to_first_attempt: ['p(99)<1000'],
  },
};

export function setup(): WebhookEndpoint {
  const limits = { max_in_flight: 100, max_per_second: 5000 };
  return must(post('/webhook-endpoints', { url: receiver, event_types: ['customer.created'], ...limits }));
}

export default function (endpoint: WebhookEndpoint): void {
  const email = `hook-${exec.scenario.iterationInTest}@example.com`;
  changes.add(ok(call(post('/customers', { first_name: 'Hook', email, metadata: { run: endpoint.id } }))) ? 1 : 0);
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

function traces(endpoint: WebhookEndpoint, made: Customer[]): Trace[] {
  // One minute earlier, in case the services' clocks differ.
  const since = new Date(Date.parse(endpoint.created_at) - 60_000).toISOString();
  const events = group(all<Event>(`/events?type=customer.created&created_after=${since}`), (e) => e.data.object.id);
  const deliveries = group(all<Delivery>(`/webhook-endpoints/${endpoint.id}/deliveries`), (d) => d.event_id);
  return made.map((customer) => {
    const mine = events.get(customer.id) ?? [];
    return { events: mine, deliveries: mine.flatMap((e) => deliveries.get(e.id) ?? []) };
  });
}

const final = (d: Delivery) => d.status === 'succeeded' || d.status === 'failed';
const ended = (t: Trace) => t.deliveries.length > 0 && t.deliveries.every(final);

function judge(t: Trace): void {
  pending.add(t.deliveries.filter((d) => d.status === 'pending' || d.status === 'delivering').length);
  const [event] = t.events;
  const [delivery] = t.deliveries;
  const attempt = delivery?.attempts[0];
  if (!event || t.events.length > 1) {
    lost.add(1);
  } else if (!attempt || t.deliveries.length > 1 || delivery.status !== 'succeeded') {
    undelivered.add(1);
  } else {
    delivered.add(1);
    delay.add(Date.parse(attempt.at) - Date.parse(event.created_at));
  }
}

export function teardown(endpoint: WebhookEndpoint): void {
  const made = all<Customer>(`/customers?metadata[run]=${endpoint.id}`);
  until(() => traces(endpoint, made), (followed) => followed.every(ended), 30, 1).forEach(judge);
  call({ method: 'DELETE', path: `/webhook-endpoints/${endpoint.id}` });
}
