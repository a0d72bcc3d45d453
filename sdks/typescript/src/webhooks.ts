import { HoldfastError, SignatureError } from "./errors.js";
import type { AnyEvent } from "./events.js";

/** Headers of a request, in the forms in which servers provide them. */
export type RequestHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** Settings of {@link unwrap}. */
export interface UnwrapOptions {
  /** Seconds by which the time of the signature can differ from the clock. Defaults to 300. */
  tolerance?: number | undefined;
  /** Time to compare with, for tests. Defaults to the current time. */
  now?: Date | undefined;
}

/**
 * Verifies a webhook delivery and returns its event. It throws a `SignatureError` if the delivery is not signed with the secret
 * or is too old.
 *
 * @param body the body exactly as it was received. If you parse it and encode it again, the signature does not match.
 * @param headers the headers of the request
 * @param secret the secret of the endpoint, `whsec_…`
 */
export async function unwrap(
  body: string | Uint8Array | ArrayBuffer,
  headers: RequestHeaders,
  secret: string,
  options: UnwrapOptions = {},
): Promise<AnyEvent> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : new Uint8Array(body);
  await verify(bytes, header(headers, "service-signature"), secret, options);
  const event: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (typeof event !== "object" || event === null || !("type" in event)) {
    throw new HoldfastError("The body of the delivery is not an event.");
  }
  return event as AnyEvent;
}

/** Verifies the value of Service-Signature: `t=<unix time>,v1=<hex>`, with several `v1` while a secret is rotated. */
async function verify(body: Uint8Array, signature: string | undefined, secret: string, options: UnwrapOptions): Promise<void> {
  if (!signature) throw new SignatureError("The Service-Signature header is missing.");
  if (!secret) throw new SignatureError("The secret is empty.");
  const { tolerance = 300, now = new Date() } = options;
  let time = "";
  const given: string[] = [];
  for (const part of signature.split(",")) {
    const [name, value = ""] = part.trim().split("=", 2);
    if (name === "t") time = value;
    if (name === "v1") given.push(value);
  }
  if (!/^\d{1,15}$/.test(time)) throw new SignatureError("The Service-Signature header has no time.");
  const prefix = new TextEncoder().encode(`${time}.`);
  const signed = new Uint8Array(prefix.length + body.length);
  signed.set(prefix);
  signed.set(body, prefix.length);
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const want = new Uint8Array(await crypto.subtle.sign("HMAC", key, signed));
  const valid = given.filter((hex) => equal(hex, want)).length > 0;
  if (!valid) throw new SignatureError("No signature matches the body and the secret.");
  if (Math.abs(Math.floor(now.getTime() / 1000) - Number(time)) > tolerance) {
    throw new SignatureError(`The signature is more than ${tolerance} seconds from the current time.`);
  }
}

/** Reports whether a hexadecimal signature is the wanted one. It takes the same time for all signatures. */
function equal(hex: string, want: Uint8Array): boolean {
  return (
    /^[0-9a-f]{64}$/i.test(hex) &&
    want.reduce((different, byte, i) => different | (byte ^ Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16)), 0) === 0
  );
}

/** Returns a header, whatever the case of its name. */
function header(headers: RequestHeaders, name: string): string | undefined {
  if (isHeaders(headers)) return headers.get(name) ?? undefined;
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return typeof value === "string" ? value : value?.join(",");
  }
  return undefined;
}

/** Reports whether headers have the methods of the class, which several packages define. */
function isHeaders(headers: RequestHeaders): headers is Headers {
  return typeof headers.get === "function";
}
