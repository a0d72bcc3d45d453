import { APIError, ConnectionError } from "./errors.js";

const BASE = 500;
const CAP = 8_000;
const LONGEST_RETRY_AFTER = 60_000;

/** Statuses after which the same request can succeed. */
const retryable = new Set([408, 425, 429, 500, 502, 503, 504]);

/**
 * Reports whether a request that failed can be repeated. All requests can: GET, PUT and DELETE by their method, POST and PATCH
 * because they have an Idempotency-Key.
 */
export function canRetry(error: unknown): boolean {
  if (error instanceof APIError && error.headers.get("service-should-retry") === "false") return false;
  if (error instanceof APIError) return retryable.has(error.status) || error.code === "idempotency_in_progress";
  return error instanceof ConnectionError;
}

/**
 * Returns the milliseconds to wait before attempt number `attempt` (1 is the first repetition). Returns undefined if the
 * server asks for a longer time than a call should wait.
 */
export function delay(error: unknown, attempt: number): number | undefined {
  const asked = error instanceof APIError ? retryAfter(error.headers) : undefined;
  if (asked !== undefined) return asked <= LONGEST_RETRY_AFTER ? asked : undefined;
  return Math.random() * Math.min(CAP, BASE * 2 ** (attempt - 1));
}

/** Returns the milliseconds of Retry-After, which is a number of seconds or a date. */
function retryAfter(headers: Headers): number | undefined {
  const value = headers.get("retry-after")?.trim();
  if (!value) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** Waits until the time is over, or fails with the reason of the signal. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
