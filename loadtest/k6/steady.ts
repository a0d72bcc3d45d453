// The everyday mix at a constant rate, for a minute or for hours. An additional user repeats the same few requests and
// compares the times at the end with those at the beginning.

import exec from 'k6/execution';
import { sleep } from 'k6';
import { Gauge } from 'k6/metrics';
import { call, post } from './lib/api.ts';
import { makeCatalogue, type Catalogue } from './lib/catalogue.ts';
import { arrivals, calm, nearly, seconds, whole } from './lib/env.ts';

const rate = whole('RATE', 50);
const duration = seconds('DURATION', '60s');
const part = Math.min(duration / 5, 300); // seconds at each end

const slowdown = new Gauge('slowdown'); // median of the last part divided by that of the first

export const options = {
  scenarios: {
    steady: arrivals(rate, duration, whole('VUS', 50)),
    probe: { executor: 'per-vu-iterations', exec: 'probe', vus: 1, iterations: 1, maxDuration: `${duration + 60}s` },
  },
  thresholds: {
    ...calm,
    'http_req_duration{scenario:steady}': ['p(95)<500'],
    'iterations{scenario:steady}': nearly(rate, duration),
    slowdown: ['value>0', 'value<2'], // it is 0 if the probe was interrupted
  },
};

export const setup = () => makeCatalogue(20);
export { step as default, retire as teardown } from './lib/catalogue.ts';

// probed makes one round of requests and returns their time in milliseconds.
function probed(c: Catalogue): number {
  const answers = [
    call(post('/customers', { first_name: 'Probe', email: `${c.run}@example.com` })),
    call({ method: 'GET', path: '/customers' }),
    call({ method: 'GET', path: `/bookings?service_id=${c.service}` }),
    call({ method: 'GET', path: `/availability?from=${c.firstDay}&to=${c.firstDay}&unit_id=${c.units[0]}` }),
  ];
  return answers.reduce((sum, a) => sum + a.timings.duration, 0);
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
    } else if (at >= duration - part) {
      late.push(ms);
    }
    sleep(0.2);
  }
  slowdown.add(median(late) / median(early));
}
