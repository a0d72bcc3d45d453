// The settings of a run, all read from the environment.

function required(name: string, what: string): string {
  const value = __ENV[name];
  if (!value) {
    throw new Error(`${name} is missing: ${what}`);
  }
  return value;
}

export const baseURL = required('BASE_URL', 'the API to load, as in http://127.0.0.1:8080/api/v1').replace(/\/+$/, '');

// Many keys, because the rate limit applies to each key.
export const keys = required('KEYS', 'test-mode API keys, separated by commas').split(',');

export function receiverURL(): string {
  return required('RECEIVER_URL', 'where webhooks are sent; it answers 200 to every POST');
}

// cardGateway returns the URL and the key with which a browser confirms payments: those of Stripe's stand-in, which accepts no
// real cards.
export function cardGateway(): { url: string; key: string } {
  return {
    url: required('STRIPE_URL', 'the stand-in for Stripe, as in http://127.0.0.1:12111').replace(/\/+$/, ''),
    key: required('STRIPE_PUBLISHABLE_KEY', 'the publishable key of the account that is connected to the tenant'),
  };
}

// whole returns a setting that is a positive whole number.
export function whole(name: string, fallback: number): number {
  const value = Number(__ENV[name] || fallback);
  if (!Number.isInteger(value) || value < 1) {
    throw new Error(`${name} is a whole number above 0, not ${__ENV[name]}`);
  }
  return value;
}

const units: Record<string, number> = { s: 1, m: 60, h: 3600 };

// seconds returns a setting that is a duration, such as 90s, 10m, or 8h.
export function seconds(name: string, fallback: string): number {
  const text = __ENV[name] || fallback;
  const found = /^([1-9][0-9]*)([smh])$/.exec(text);
  if (!found) {
    throw new Error(`${name} is a duration such as 90s, 10m or 8h, not ${text}`);
  }
  return Number(found[1]) * (units[found[2] ?? ''] ?? 0);
}
