// Hundreds of users compete for one slot, each with their own Idempotency-Key. Exactly one gets it.

import http from 'k6/http';
import { Counter } from 'k6/metrics';
import { all, patient, refusal } from './lib/api.ts';
import { makeCatalogue, retire, slot, type Catalogue } from './lib/catalogue.ts';
import { whole } from './lib/env.ts';
import type { Booking } from './lib/types.ts';

const vus = whole('VUS', 300);

const won = new Counter('won');
const lost = new Counter('lost'); // 409 slot_unavailable
const waited = new Counter('waited'); // retries after 429 and 503
const other = new Counter('other');
const booked = new Counter('booked'); // bookings of the unit in the list afterwards

http.setResponseCallback(http.expectedStatuses(200, 201, 409));

export const options = {
  scenarios: { race: { executor: 'per-vu-iterations', vus, iterations: 1, maxDuration: '2m' } },
  thresholds: { won: ['count==1'], lost: [`count==${vus - 1}`], other: ['count==0'], booked: ['count==1'] },
};

export function setup(): Catalogue {
  return makeCatalogue(1);
}

export default function (c: Catalogue): void {
  const a = patient({ method: 'POST', path: '/bookings', body: slot(c, 0, 1), idempotencyKey: `${c.run}-${__VU}` }, waited);
  if (a.status === 201) {
    won.add(1);
  } else if (a.status === 409 && refusal(a) === 'slot_unavailable') {
    lost.add(1);
  } else {
    other.add(1);
    console.error(`${a.status} ${a.error} ${a.body}`);
  }
}

export function teardown(c: Catalogue): void {
  booked.add(all<Booking>(`/bookings?unit_id=${c.units[0]}`).length);
  retire(c);
}
