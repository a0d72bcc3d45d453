// Many users send the same request with the same Idempotency-Key at the same time, for many keys. Each request takes
// effect once.

import http from 'k6/http';
import exec from 'k6/execution';
import { Counter } from 'k6/metrics';
import type { Booking } from '../../sdks/typescript/src/types.gen.ts';
import { all, patient, post, read } from './lib/api.ts';
import { makeCatalogue, retire, type Catalogue } from './lib/catalogue.ts';
import { none, whole } from './lib/env.ts';

const vus = whole('VUS', 60);
const operations = whole('OPERATIONS', 40); // each with an Idempotency-Key

const done = new Counter('done'); // responses that are not replays
const replayed = new Counter('replayed');
const waited = new Counter('waited'); // retries after 409 idempotency_in_progress, 429, and 503
const other = new Counter('other');
const sameId = new Counter('same_id'); // responses with the id of the only resource in the list
const resources = new Counter('resources'); // resources that exist afterwards

http.setResponseCallback(http.expectedStatuses(200, 201, 409));

export const options = {
  scenarios: { storm: { executor: 'per-vu-iterations', vus, iterations: operations, maxDuration: '5m' } },
  thresholds: {
    ...none('other'),
    done: [`count==${operations}`],
    replayed: [`count==${(vus - 1) * operations}`],
    same_id: [`count==${vus * operations}`],
    resources: [`count==${operations}`],
  },
};

export const setup = () => makeCatalogue(1);

// path alternates between customers and bookings without a unit, because only the key prevents duplicates of them.
function path(n: number): string {
  return n % 2 ? '/customers' : '/bookings';
}

function rows(c: Catalogue, n: number): string[] {
  return all<Booking>(`${path(n)}?metadata[storm]=${c.run}-${n}`).map((row) => row.id);
}

export default function (c: Catalogue): void {
  const n = exec.vu.iterationInScenario;
  const metadata = { storm: `${c.run}-${n}` };
  const customer = { first_name: 'Storm', email: `${c.run}@example.com`, metadata };
  const booking = { event_date: c.firstDay, package_id: c.package, metadata };
  const a = patient(post(path(n), n % 2 ? customer : booking, metadata.storm, n), waited);
  if (a.status !== 201) {
    other.add(1);
    console.error(`${a.status} ${a.error} ${a.body}`);
    return;
  }
  (a.headers['Idempotent-Replayed'] === 'true' ? replayed : done).add(1);
  sameId.add(rows(c, n).join() === read<Booking>(a).id ? 1 : 0);
}

export function teardown(c: Catalogue): void {
  for (let n = 0; n < operations; n++) {
    resources.add(rows(c, n).length);
  }
  retire(c);
}
