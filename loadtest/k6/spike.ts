// From a low rate to a peak within seconds, and back. Requests beyond capacity are refused properly, and the platform recovers.

import exec from 'k6/execution';
import { Counter } from 'k6/metrics';
import { ok, type Answer } from './lib/api.ts';
import { makeCatalogue, retire, type Catalogue } from './lib/catalogue.ts';
import { whole } from './lib/env.ts';
import { step } from './lib/visit.ts';

const calm = 10;
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
      startRate: calm,
      timeUnit: '1s',
      preAllocatedVUs: whole('VUS', 200),
      stages: [
        { target: calm, duration: '10s' },
        { target: peak, duration: '5s' },
        { target: peak, duration: '15s' },
        { target: calm, duration: '5s' },
        { target: calm, duration: '30s' },
      ],
    },
  },
  thresholds: {
    disorderly: ['count==0'],
    calm_refused: ['count==0'],
    calm_answers: [`count>=${Math.floor(0.99 * (65 - settled) * calm)}`],
    'http_req_duration{phase:calm}': ['p(95)<500'],
  },
};

export function setup(): Catalogue {
  return makeCatalogue(20);
}

function orderly(a: Answer): boolean {
  return (a.status === 429 || a.status === 503) && Number(a.headers['Retry-After']) >= 1;
}

export default function (c: Catalogue): void {
  const over = Date.now() - exec.scenario.startTime >= settled * 1000;
  exec.vu.metrics.tags.phase = over ? 'calm' : 'spike';
  const a = step(c);
  if (ok(a)) {
    calmAnswers.add(over ? 1 : 0);
    return;
  }
  if (orderly(a)) {
    refused.add(1);
  } else {
    disorderly.add(1);
    console.error(`${a.status} ${a.error} ${a.body}`);
  }
  calmRefused.add(over ? 1 : 0);
}

export function teardown(c: Catalogue): void {
  retire(c);
}
