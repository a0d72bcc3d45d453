// Clients read a list of thousands of rows by cursor, in both orders, while rows are inserted. No row is returned twice
// or left out.

import { sleep } from 'k6';
import exec from 'k6/execution';
import { Counter } from 'k6/metrics';
import type { Booking } from '../../sdks/typescript/src/types.gen.ts';
import { call, get, ok, post, read, together, type Page } from './lib/api.ts';
import { makeCatalogue, retire, type Catalogue } from './lib/catalogue.ts';
import { arrivals, none, whole } from './lib/env.ts';

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
    insert: arrivals(whole('RATE', 20), 10, 5, 'insert'),
  },
  thresholds: {
    ...none('rows_twice', 'rows_missing'),
    http_req_failed: ['rate==0'],
    walks: [`count==${walkers * walks}`],
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

const row = (c: Catalogue) => post('/bookings', { event_date: c.firstDay, event_type: c.run });

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
  return { catalogue, ids: made.map((b) => b.id), since: made.map((b) => b.created_at).sort()[0] ?? '' };
}

export function insert(l: List): void {
  inserted.add(ok(call(row(l.catalogue))) ? 1 : 0);
}

export function walk(l: List): void {
  const sort = exec.vu.iterationInInstance % 2 ? 'updated_at' : 'created_at'; // ascending, or newest first
  const newest = get<Page<Booking>>('/bookings?limit=1').data[0]?.created_at ?? '';
  const seen = new Set<string>();
  let cursor = '';
  let met = 0;
  do {
    const p = get<Page<Booking>>(`/bookings?created_after=${l.since}&sort=${sort}&limit=50${cursor}`);
    p.data.forEach((b) => seen.add(b.id));
    late.add(p.data.filter((b) => Date.parse(b.created_at) > Date.parse(newest)).length);
    met += p.data.length;
    cursor = p.next_cursor ? `&cursor=${encodeURIComponent(p.next_cursor)}` : '';
    sleep(0.05);
  } while (cursor);
  twice.add(met - seen.size);
  missing.add(l.ids.filter((id) => !seen.has(id)).length);
  walked.add(1);
}

export function teardown(l: List): void {
  retire(l.catalogue);
}
