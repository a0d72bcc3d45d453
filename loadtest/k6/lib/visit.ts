// The requests of an operator's website, one at a time: a customer, a booking, its changes, and lists in between.

import exec from 'k6/execution';
import { call, ok, read, type Answer } from './api.ts';
import { addDays, slot, type Catalogue } from './catalogue.ts';
import type { Row } from './types.ts';

const days = 60;

interface Visit {
  customer: string;
  booking: string;
}

const visit: Visit = { customer: '', booking: '' }; // state of this user
let next = 0;

type Step = (c: Catalogue, n: number) => Answer;

function create(path: string, n: number, c: Catalogue, body: object, keep: keyof Visit): Answer {
  const a = call({ method: 'POST', path, body, idempotencyKey: `${c.run}-${n}` });
  if (ok(a)) {
    visit[keep] = read<Row>(a).id;
  }
  return a;
}

// change sends a body to the booking or to one of its actions.
function change(method: 'PATCH' | 'POST', action: string, n: number, c: Catalogue, body: object): Answer {
  const name = `${method} /bookings/{id}${action}`;
  return call({ method, path: `/bookings/${visit.booking}${action}`, name, body, idempotencyKey: `${c.run}-${n}` });
}

function week(n: number, c: Catalogue): Answer {
  const unit = slot(c, n, days).unit_id;
  return call({ method: 'GET', path: `/availability?from=${c.firstDay}&to=${addDays(c.firstDay, 6)}&unit_id=${unit}` });
}

const steps: Step[] = [
  (c, n) => create('/customers', n, c, { first_name: 'Load', email: `${c.run}-${n}@example.com` }, 'customer'),
  (c, n) => create('/bookings', n, c, { ...slot(c, n, days), customer_id: visit.customer }, 'booking'),
  () => call({ method: 'GET', path: `/bookings/${visit.booking}`, name: 'GET /bookings/{id}' }),
  (c) => call({ method: 'GET', path: `/bookings?service_id=${c.service}` }),
  (c, n) => change('PATCH', '', n, c, { status: 'confirmed' }),
  (c, n) => week(n, c),
  () => call({ method: 'GET', path: `/bookings/${visit.booking}?expand=customer`, name: 'GET /bookings/{id}?expand=customer' }),
  () => call({ method: 'GET', path: '/customers' }),
  () => call({ method: 'GET', path: `/customers/${visit.customer}`, name: 'GET /customers/{id}' }),
  (c, n) => change('POST', '/cancel', n, c, { reason: 'load' }),
];

// step makes this user's next request. After a refusal, the user starts over.
export function step(c: Catalogue): Answer {
  const todo = steps[next];
  if (!todo) {
    throw new Error(`there is no step ${next}`);
  }
  const a = todo(c, exec.scenario.iterationInTest);
  next = ok(a) ? (next + 1) % steps.length : 0;
  return a;
}
