// The settings of a run, all read from the environment, and options that are derived from them.

export function required(name: string, what: string): string {
  const value = __ENV[name];
  if (!value) {
    throw new Error(`${name} is missing: ${what}`);
  }
  return value;
}

export const baseURL = required('BASE_URL', 'the API to load, as in http://127.0.0.1:8080/api/v1').replace(/\/+$/, '');

// Many keys, because the rate limit applies to each key.
export const keys = required('KEYS', 'test-mode API keys, separated by commas').split(',');

// whole returns a setting that is a positive whole number.
export function whole(name: string, fallback: number): number {
  const value = Number(__ENV[name] || fallback);
  if (!Number.isInteger(value) || value < 1) {
    throw new Error(`${name} is a whole number above 0, not ${__ENV[name]}`);
  }
  return value;
}

// seconds returns a setting that is a duration, such as 90s, 10m, or 8h.
export function seconds(name: string, fallback: string): number {
  const text = __ENV[name] || fallback;
  const found = /^([1-9][0-9]*)([smh])$/.exec(text);
  if (!found) {
    throw new Error(`${name} is a duration such as 90s, 10m or 8h, not ${text}`);
  }
  return Number(found[1]) * ({ s: 1, m: 60, h: 3600 }[found[2] ?? ''] ?? 0);
}

// arrivals is a scenario with a constant arrival rate per second.
export function arrivals(rate: number, duration: number, preAllocatedVUs: number, exec = 'default') {
  return { executor: 'constant-arrival-rate', exec, rate, timeUnit: '1s', duration: `${duration}s`, preAllocatedVUs };
}

// none is the thresholds of counters that stay 0.
export function none(...counters: string[]): Record<string, string[]> {
  return Object.fromEntries(counters.map((name) => [name, ['count==0']]));
}

// calm is the thresholds of a run without failed requests, in which no request was skipped.
export const calm = { http_req_failed: ['rate==0'], ...none('dropped_iterations') };

// nearly is the threshold of a counter that reaches the number of arrivals, except the last ones.
export function nearly(rate: number, duration: number): string[] {
  return [`count>=${Math.floor(0.99 * rate * duration)}`];
}
