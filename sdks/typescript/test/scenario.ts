// usage: scenario.js FILE: runs the scenario of sdks/scenario with this package, and prints a line of JSON after each step.
import { readFileSync } from "node:fs";
import {
  type AnyEvent,
  APIError,
  type Booking,
  Holdfast,
  type ListBookingsData,
  type ListEventsData,
  type WriteOptions,
} from "@holdfast/sdk";

interface Step {
  name: string;
  call: string;
  id?: string;
  body?: never;
  query?: object;
  key?: string;
  after?: string;
  take?: number;
  attempt_timeout?: number;
  save?: Record<string, string>;
}

interface Result {
  object?: object | undefined;
  rows?: string[];
  replayed?: boolean;
  code?: string;
  param?: string | undefined;
}

const client = new Holdfast();
const values: Record<string, string> = { run: process.env.SCENARIO_RUN ?? "" };

/** Returns an object of the scenario with the values in place of their names. */
function filled<T>(value: T): T {
  if (value === undefined) return value;
  return JSON.parse(JSON.stringify(value).replace(/\{(\w+)\}/g, (text, name: string) => values[name] ?? text));
}

/** Reads rows until there are enough. */
async function rows<T extends { id: string }>(list: AsyncIterable<T>, take = 0, id = (row: T) => row.id): Promise<Result> {
  const all: T[] = [];
  for await (const row of list) if (all.push(row) === take) break;
  return { object: all[0], rows: all.map(id) };
}

/** Returns the ID of the booking of an event. */
function bookingOf(event: AnyEvent): string {
  return event.type === "booking.created" ? event.data.object.id : "";
}

async function call(step: Step): Promise<Result> {
  const { id = "", body, query = {}, take, after } = step;
  const options: WriteOptions = { idempotencyKey: step.key, timeout: step.attempt_timeout && step.attempt_timeout * 1000 };
  const object = async (promise: { withResponse(): Promise<{ data: object; replayed: boolean }> }): Promise<Result> => {
    const { data, replayed } = await promise.withResponse();
    return { object: data, replayed };
  };
  switch (step.call) {
    case "customers.create":
      return object(client.customers.create(body as never, options));
    case "units.create":
      return object(client.units.create(body as never, options));
    case "bookings.create":
      return object(client.bookings.create(body as never, options));
    case "bookings.update":
      return object(client.bookings.update(id, body as never, options));
    case "bookings.cancel":
      return object(client.bookings.cancel(id, body, options));
    case "bookings.get":
      return object(client.bookings.get(id, {}, options));
    case "bookings.list":
      return rows<Booking>(client.bookings.list(query as ListBookingsData["query"], options), take);
    case "events.list":
      return rows(client.events.list(query as ListEventsData["query"], options), take);
    case "events.stream":
      return rows(client.events.stream(query, { lastEventId: after }), take, bookingOf);
    default:
      throw new Error(`the runner has no method ${step.call}`);
  }
}

const [path = ""] = process.argv.slice(2);
const { steps } = JSON.parse(readFileSync(path, "utf8")) as { steps: Step[] };
for (const step of steps) {
  const start = performance.now();
  const result = await call(filled(step)).catch((error: unknown): Result => {
    if (!(error instanceof APIError)) throw error;
    return { code: error.code, param: error.param };
  });
  const saved = (result.object ?? {}) as Record<string, unknown>;
  for (const [name, field] of Object.entries(step.save ?? {})) values[name] = `${saved[field]}`;
  console.log(JSON.stringify({ step: step.name, replayed: false, ...result, seconds: (performance.now() - start) / 1000 }));
}
