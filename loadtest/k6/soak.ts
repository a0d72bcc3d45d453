// The everyday mix for hours. An additional user repeats the same few requests and compares the times at the end with those at the
// beginning.

import exec from 'k6/execution';
import { sleep } from 'k6';
import { Gauge, Trend } from 'k6/metrics';
import { call } from './lib/api.ts';
import { makeCatalogue, retire, type Catalogue } from './lib/catalogue.ts';
import { seconds, whole } from './lib/env.ts';
import { step } from './lib/visit.ts';

const rate = whole('RATE', 20);
const duration = seconds('DURATION', '10m');
const part = Math.min(duration / 5, 300); // seconds at each end
const pause = 0.2;

const first = new Trend('probe_first_minutes', true);
const last = new Trend('probe_last_minutes', true);
const slowdown = new Gauge('slowdown'); // median of the last minutes divided by that of the first

export const options = {
  scenarios: {
    soak: { executor: 'constant-arrival-rate', rate, timeUnit: '1s', duration: `${duration}s`, preAllocatedVUs: whole('VUS', 20) },
    probe: { executor: 'per-vu-iterations', exec: 'probe', vus: 1, iterations: 1, maxDuration: `${duration + 60}s` },
  },
  thresholds: {
    http_req_failed: ['rate==0'],
    'http_req_duration{scenario:soak}': ['p(95)<500'],
    'iterations{scenario:soak}': [`count>=${Math.floor(0.99 * rate * duration)}`],
    dropped_iterations: ['count==0'],
    slowdown: ['value>0', 'value<2'], // it is 0 if the probe was interrupted
  },
};

export function setup(): Catalogue {
  return makeCatalogue(20);
}

export default function (c: Catalogue): void {
  step(c);
}

// probed makes one round of requests and returns the mean time in milliseconds.
function probed(c: Catalogue): number {
  const answers = [
    call({ method: 'POST', path: '/customers', body: { first_name: 'Probe', email: `${c.run}@example.com` } }),
    call({ method: 'GET', path: '/customers' }),
    call({ method: 'GET', path: `/bookings?service_id=${c.service}` }),
    call({ method: 'GET', path: `/availability?from=${c.firstDay}&to=${c.firstDay}&unit_id=${c.units[0]}` }),
  ];
  return answers.reduce((sum, a) => sum + a.timings.duration, 0) / answers.length;
}

function median(of: number[]): number {
  return of.sort((a, b) => a - b)[Math.floor(of.length / 2)] ?? 0;
}

export function probe(c: Catalogue): void {
  const early: number[] = [];
  const late: number[] = [];
  for (let at = 0; at < duration; at = (Date.now() - exec.scenario.startTime) / 1000) {
    const ms = probed(c);
    if (at < part) {
      early.push(ms);
      first.add(ms);
    } else if (at >= duration - part) {
      late.push(ms);
      last.add(ms);
    }
    sleep(pause);
  }
  slowdown.add(median(late) / median(early));
}

export function teardown(c: Catalogue): void {
  retire(c);
}
