// From a low rate to a peak within seconds, and back. Requests beyond capacity are refused properly, and the platform
// recovers.

import exec from 'k6/execution';
import { Counter } from 'k6/metrics';
import { ok } from './lib/api.ts';
import { makeCatalogue, step, type Catalogue } from './lib/catalogue.ts';
import { nearly, none, whole } from './lib/env.ts';

const low = 10;
const peak = whole('RATE', 200);
const settled = 45; // seconds after the start; 10 after the last step down

const refused = new Counter('refused'); // 429 and 503 with Retry-After
const disorderly = new Counter('disorderly'); // any other response except 2xx
const calmAnswers = new Counter('calm_answers'); // 2xx after the peak
const calmRefused = new Counter('calm_refused');

export const options = {
  scenarios: {
    spike: {
      executor: 'ramping-arrival-rate',
      startRate: low,
      timeUnit: '1s',
      preAllocatedVUs: whole('VUS', 200),
      stages: [
        { target: low, duration: '10s' },
        { target: peak, duration: '5s' },
        { target: peak, duration: '15s' },
        { target: low, duration: '5s' },
        { target: low, duration: '30s' },
      ],
    },
  },
  thresholds: {
    ...none('disorderly', 'calm_refused'),
    calm_answers: nearly(low, 65 - settled),
    'http_req_duration{phase:calm}': ['p(95)<500'],
  },
};

export const setup = () => makeCatalogue(20);
export { retire as teardown } from './lib/catalogue.ts';

export default function (c: Catalogue): void {
  const over = Date.now() - exec.scenario.startTime >= settled * 1000;
  exec.vu.metrics.tags.phase = over ? 'calm' : 'spike';
  const a = step(c);
  if (ok(a)) {
    calmAnswers.add(over ? 1 : 0);
    return;
  }
  const orderly = (a.status === 429 || a.status === 503) && Number(a.headers['Retry-After']) >= 1;
  (orderly ? refused : disorderly).add(1);
  calmRefused.add(over ? 1 : 0);
}
