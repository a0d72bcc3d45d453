// The everyday mix at a constant rate.

import { makeCatalogue, retire, type Catalogue } from './lib/catalogue.ts';
import { seconds, whole } from './lib/env.ts';
import { step } from './lib/visit.ts';

const rate = whole('RATE', 50);
const duration = seconds('DURATION', '60s');

export const options = {
  scenarios: {
    steady: { executor: 'constant-arrival-rate', rate, timeUnit: '1s', duration: `${duration}s`, preAllocatedVUs: whole('VUS', 50) },
  },
  thresholds: {
    http_req_failed: ['rate==0'],
    http_req_duration: ['p(95)<500'],
    iterations: [`count>=${Math.floor(0.99 * rate * duration)}`],
    dropped_iterations: ['count==0'],
  },
};

export function setup(): Catalogue {
  return makeCatalogue(20);
}

export default function (c: Catalogue): void {
  step(c);
}

export function teardown(c: Catalogue): void {
  retire(c);
}
