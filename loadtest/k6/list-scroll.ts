// Clients read a list of thousands of rows by cursor, in both orders, while rows are inserted. No row is returned twice or left
// out.

import { sleep } from 'k6';
import exec from 'k6/execution';
import { Counter } from 'k6/metrics';
import { all, call, must, ok, read, together, type Call } from './lib/api.ts';
import { makeCatalogue, retire, type Catalogue } from './lib/catalogue.ts';
import { whole } from './lib/env.ts';
import type { Booking, Page } from './lib/types.ts';

const rows = whole('ROWS', 3000); // existing rows before the walks begin
const walkers = whole('VUS', 4);
const walks = 3; // per client

const walked = new Counter('walks');
const twice = new Counter('rows_twice');
const missing = new Counter('rows_missing');
const inserted = new Counter('rows_inserted');
const late = new Counter('rows_met_of_those_inserted_during_the_walk');

export const options = {
  batchPerHost: 10,
  setupTimeout: '10m',
  scenarios: {
    walk: { executor: 'per-vu-iterations', exec: 'walk', vus: walkers, iterations: walks, maxDuration: '5m' },
    insert: { executor: 'constant-arrival-rate', exec: 'insert', rate: whole('RATE', 20), timeUnit: '1s', duration: '10s', preAllocatedVUs: 5 },
  },
  thresholds: {
    http_req_failed: ['rate==0'],
    walks: [`count==${walkers * walks}`],
    rows_twice: ['count==0'],
    rows_missing: ['count==0'],
    rows_inserted: ['count>0'],
    // Clients in ascending order must find some, or nothing was inserted during the walks.
    rows_met_of_those_inserted_during_the_walk: ['count>0'],
  },
};

interface List {
  catalogue: Catalogue;
  ids: string[];
  since: string;
}

function row(c: Catalogue): Call {
  return { method: 'POST', path: '/bookings', body: { event_date: c.firstDay, event_type: c.run } };
}

export function setup(): List {
  const catalogue = makeCatalogue(1);
  const made: Booking[] = [];
  while (made.length < rows) {
    const size = Math.min(100, rows - made.length);
    const answers = together(Array.from({ length: size }, () => row(catalogue))).filter(ok);
    if (answers.length === 0) {
      throw new Error(`no row of ${size} was made`);
    }
    made.push(...answers.map((a) => read<Booking>(a)));
  }
  const since = made.map((b) => b.created_at).sort()[0] ?? '';
  return { catalogue, ids: made.map((b) => b.id), since };
}

export function insert(l: List): void {
  if (ok(call(row(l.catalogue)))) {
    inserted.add(1);
  }
}

export function walk(l: List): void {
  const sort = exec.vu.iterationInInstance % 2 ? 'updated_at' : 'created_at'; // ascending, or newest first
  const newest = must<Page<Booking>>({ method: 'GET', path: '/bookings?limit=1' }).data[0]?.created_at ?? '';
  const seen = new Set<string>();
  let young = 0;
  let cursor = '';
  let met = 0;
  do {
    const path = `/bookings?created_after=${l.since}&sort=${sort}&limit=50${cursor}`;
    const p = must<Page<Booking>>({ method: 'GET', path, name: `GET /bookings?sort=${sort}` });
    p.data.forEach((b) => seen.add(b.id));
    young += p.data.filter((b) => Date.parse(b.created_at) > Date.parse(newest)).length;
    met += p.data.length;
    cursor = p.next_cursor ? `&cursor=${encodeURIComponent(p.next_cursor)}` : '';
    sleep(0.05);
  } while (cursor);
  twice.add(met - seen.size);
  missing.add(l.ids.filter((id) => !seen.has(id)).length);
  late.add(young);
  walked.add(1);
}

export function teardown(l: List): void {
  const stored = all<Booking>(`/bookings?event_type=${l.catalogue.run}`);
  console.log(`${l.ids.length} rows before, ${stored.length} after`);
  retire(l.catalogue);
}
