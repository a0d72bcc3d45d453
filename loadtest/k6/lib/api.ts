// Requests, each with an API key and a name without ids.

import { sleep } from 'k6';
import type { Counter } from 'k6/metrics';
import http, { type ObjectRefinedBatchRequest, type RefinedParams, type RefinedResponse } from 'k6/http';
import type { ErrorResponse } from '../../../sdks/typescript/src/types.gen.ts';
import { baseURL, keys } from './env.ts';

export type Answer = RefinedResponse<'text'>;

export interface Page<T> {
  data: T[];
  next_cursor: string | null;
}

export interface Event {
  id: string;
  type: string;
  created_at: string;
  data: { object: { id: string } };
}

// path is the URL relative to BASE_URL. name groups the metrics.
export interface Call {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  name?: string;
  body?: object;
  idempotencyKey?: string;
  key?: number; // index of the API key; default: the next one
}

let turn = __VU; // users start at different keys

function params(c: Call): RefinedParams<'text'> {
  const headers: Record<string, string> = { Authorization: `Bearer ${keys[(c.key ?? turn++) % keys.length]}` };
  if (c.body) {
    headers['Content-Type'] = 'application/json';
    headers.Prefer = 'handling=strict';
  }
  if (c.idempotencyKey) {
    headers['Idempotency-Key'] = c.idempotencyKey;
  }
  const name = c.name ?? `${c.method} ${c.path.replace(/\?.*/, '').replace(/\/[a-z]+_[0-9a-z]{26}/, '/{id}')}`;
  return { headers, responseType: 'text', timeout: '30s', tags: { name } };
}

export function call(c: Call): Answer {
  return http.request(c.method, baseURL + c.path, c.body && JSON.stringify(c.body), params(c));
}

export function post(path: string, body?: object, idempotencyKey?: string, key?: number): Call {
  return { method: 'POST', path, body, idempotencyKey, key };
}

export function patch(path: string, body: object, idempotencyKey?: string): Call {
  return { method: 'PATCH', path, body, idempotencyKey };
}

// together sends many calls, a few at a time.
export function together(calls: Call[]): Answer[] {
  const requests: ObjectRefinedBatchRequest<'text'>[] = calls.map((c) => ({
    method: c.method,
    url: baseURL + c.path,
    body: c.body && JSON.stringify(c.body),
    params: params(c),
  }));
  return http.batch(requests);
}

export function read<T>(a: Answer): T {
  return JSON.parse(a.body) as T;
}

export function ok(a: Answer): boolean {
  return a.status >= 200 && a.status < 300;
}

// refusal returns the code of an error, or the status if the body has no code.
export function refusal(a: Answer): string {
  try {
    return read<ErrorResponse>(a).error.code;
  } catch {
    return `status ${a.status}`;
  }
}

// patient repeats the same request with the same key as long as the response asks to retry later.
export function patient(c: Call, waited: Counter): Answer {
  let a = call(c);
  const later = () => a.status === 429 || a.status === 503 || refusal(a) === 'idempotency_in_progress';
  for (let left = 20; left > 0 && later(); left--) {
    waited.add(1);
    sleep(Number(a.headers['Retry-After'] ?? 1));
    a = call(c);
  }
  return a;
}

// must makes a call that a scenario depends on. A failure outside setup ends the iteration.
export function must<T>(c: Call): T {
  const a = call(c);
  if (!ok(a)) {
    throw new Error(`${c.method} ${c.path}: ${a.status} ${a.body ?? a.error}`);
  }
  return read<T>(a);
}

export function get<T>(path: string): T {
  return must<T>({ method: 'GET', path });
}

// all returns the rows of a list from its first page to its last.
export function all<T>(path: string): T[] {
  const rows: T[] = [];
  let more = '';
  do {
    const page = get<Page<T>>(`${path}${path.includes('?') ? '&' : '?'}limit=100${more}`);
    rows.push(...page.data);
    more = page.next_cursor ? `&cursor=${encodeURIComponent(page.next_cursor)}` : '';
  } while (more);
  return rows;
}

// until reads again, after a pause in seconds, until the state is as expected or the number of polls is used up.
export function until<T>(look: () => T, done: (state: T) => boolean, polls = 50, pause = 0.2): T {
  let state = look();
  for (let left = polls; left > 0 && !done(state); left--) {
    sleep(pause);
    state = look();
  }
  return state;
}
