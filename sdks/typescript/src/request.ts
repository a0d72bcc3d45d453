import { HoldfastError } from "./errors.js";

/** HTTP method of an operation. */
export type Method = "DELETE" | "GET" | "PATCH" | "POST" | "PUT";

/** What is sent with a request. */
export interface Input {
  /** Values for the names in braces in the path. */
  params?: Readonly<Record<string, string>>;
  query?: object | undefined;
  body?: object | undefined;
  /** Media type of the response. Defaults to JSON. */
  accept?: string;
}

/** Returns the address of a request. */
export function address(baseURL: string, path: string, input: Input): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, input.params?.[name]));
  const query = search(input.query);
  return baseURL + filled + (query && `?${query}`);
}

/** Returns a value as one segment of a path. An empty ID or a dot would lead to a different operation. */
function segment(name: string, value: string | undefined): string {
  if (typeof value !== "string" || /^\.{0,2}$/.test(value)) {
    throw new HoldfastError(`${name} must be a non-empty string, not ${JSON.stringify(value)}.`);
  }
  return encodeURIComponent(value);
}

/** Returns parameters as a query: arrays are joined with commas, and objects become `name[key]=value`. */
function search(query: object = {}): string {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    if (value instanceof Date || Array.isArray(value) || typeof value !== "object") {
      all.append(name, text(value));
    } else {
      for (const [key, inner] of Object.entries(value)) all.append(`${name}[${key}]`, text(inner));
    }
  }
  return all.toString();
}

function text(value: unknown): string {
  return value instanceof Date ? value.toISOString() : String(value);
}

/** Returns an entity tag for a version. */
export function entityTag(version: number | string): string {
  return /^(\*|.*")$/.test(`${version}`) ? `${version}` : `"${version}"`;
}
