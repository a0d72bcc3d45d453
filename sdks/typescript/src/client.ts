import { classOfCode } from "./errors.gen.js";
import { type APIError, AuthenticationError, ConnectionError, classOfStatus, HoldfastError, TimeoutError } from "./errors.js";
import type { ClientOptions, ConditionalOptions, RequestOptions, TokenSource, WriteOptions } from "./options.js";
import { type Page, Pages } from "./pages.js";
import { APIPromise, type APIResponse } from "./promise.js";
import { address, entityTag, type Input, type Method } from "./request.js";
import { canRetry, delay, sleep } from "./retry.js";
import type { ErrorResponse } from "./types.gen.js";
import { VERSION } from "./version.gen.js";

/** All settings of a call. */
type Options = RequestOptions & WriteOptions & ConditionalOptions;

/** One call, with everything that its attempts share. */
interface Call {
  readonly method: Method;
  readonly url: string;
  readonly headers: Headers;
  readonly body: string | null;
  /** Whether the body of the response is returned while it arrives. */
  readonly streamed: boolean;
  readonly signal: AbortSignal | undefined;
  readonly timeout: number;
  readonly maxRetries: number;
  /** Time at which the call ends. */
  readonly end: number;
}

/** Sends requests to the API. Pass it to the resources that you use, or use `Holdfast`, which has all resources. */
export class Client {
  readonly #baseURL: string;
  readonly #options: ClientOptions;
  readonly #fetch: typeof globalThis.fetch;
  readonly #tokens: TokenSource;

  constructor(options: ClientOptions = {}) {
    const { apiKey = environment("HOLDFAST_API_KEY"), baseURL = environment("HOLDFAST_BASE_URL") } = options;
    const { tokenSource = apiKey ? { token: () => apiKey } : undefined } = options;
    if (!tokenSource) {
      throw new HoldfastError("The API key is missing. Pass apiKey or tokenSource, or set HOLDFAST_API_KEY.");
    }
    if (!baseURL) {
      throw new HoldfastError("The address of the API is missing. Pass baseURL, or set HOLDFAST_BASE_URL.");
    }
    this.#baseURL = baseURL.replace(/\/+$/, "");
    this.#options = options;
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#tokens = options.tokenSource ?? tokenSource;
  }

  /**
   * Sends a request and returns its JSON. The methods of the resources call it. Call it yourself for an operation that this
   * version does not have, with the path relative to the base URL.
   */
  request<T>(method: Method, path: string, input: Input = {}, options: Options = {}): APIPromise<T> {
    return new APIPromise(this.#run<T>(method, path, input, options, false));
  }

  /** Sends a request and returns the response of fetch, whose body can be read as a stream. */
  raw(method: Method, path: string, input: Input = {}, options: Options = {}): APIPromise<Response> {
    return new APIPromise(this.#run<Response>(method, path, { accept: "*/*", ...input }, options, true));
  }

  /** Returns a list whose pages are requested when they are needed. */
  pages<T>(path: string, input: Input = {}, options: Options = {}): Pages<T> {
    return new Pages((cursor) => {
      const query = cursor === undefined ? input.query : { ...input.query, cursor };
      return this.request<Page<T>>("GET", path, { ...input, query }, options);
    });
  }

  /** Runs a call: it repeats attempts that failed for a temporary reason. */
  async #run<T>(method: Method, path: string, input: Input, options: Options, streamed: boolean): Promise<APIResponse<T>> {
    const call = this.#call(method, path, input, options, streamed);
    let expired: string | undefined;
    for (let attempt = 1; ; attempt++) {
      const { signal, release } = limit(call);
      let token: string | undefined;
      try {
        token = await until(signal, this.#tokens.token(expired));
        return await this.#attempt<T>(call, token, signal);
      } catch (error) {
        call.signal?.throwIfAborted();
        const failure: unknown = signal.aborted ? signal.reason : error;
        if (token !== undefined && expired === undefined && this.#canRefresh(failure)) {
          expired = token;
          attempt--;
          continue;
        }
        const wait = delay(failure, attempt);
        if (attempt > call.maxRetries || !canRetry(failure) || wait === undefined || Date.now() + wait >= call.end) {
          if (failure instanceof ConnectionError) failure.idempotencyKey = call.headers.get("idempotency-key") ?? undefined;
          throw failure;
        }
        await sleep(wait, call.signal);
      } finally {
        release();
      }
    }
  }

  /** Reports whether another access token can help. */
  #canRefresh(failure: unknown): boolean {
    return failure instanceof AuthenticationError && failure.code === "expired_credential" && this.#options.tokenSource !== undefined;
  }

  /** Returns what all attempts of a call share. */
  #call(method: Method, path: string, input: Input, options: Options, streamed: boolean): Call {
    const all = { timeout: 30_000, deadline: 120_000, maxRetries: 2, strict: true, ...defined(this.#options), ...defined(options) };
    const headers = new Headers({ accept: input.accept ?? "application/json" });
    // The CORS protocol does not let pages and their workers send this header to other origins.
    if (!("document" in globalThis || "importScripts" in globalThis)) headers.set("user-agent", `holdfast-typescript/${VERSION}`);
    if (method === "POST" || method === "PATCH") {
      headers.set("idempotency-key", options.idempotencyKey ?? crypto.randomUUID());
      if (all.strict) headers.set("prefer", "handling=strict");
    }
    if (input.body !== undefined) headers.set("content-type", "application/json");
    if (options.ifMatch !== undefined) headers.set("if-match", entityTag(options.ifMatch));
    for (const [name, value] of Object.entries({ ...this.#options.headers, ...options.headers })) headers.set(name, value);
    return {
      method,
      url: address(this.#baseURL, path, input),
      headers,
      body: input.body === undefined ? null : JSON.stringify(input.body),
      streamed,
      signal: options.signal,
      timeout: all.timeout,
      maxRetries: all.maxRetries,
      end: Date.now() + all.deadline,
    };
  }

  /** Sends a request once. The body of the response is part of the attempt, because the connection can fail in the middle of it. */
  async #attempt<T>(call: Call, token: string, signal: AbortSignal): Promise<APIResponse<T>> {
    const { method, url, headers, body, streamed } = call;
    const { dispatcher } = this.#options;
    headers.set("authorization", `Bearer ${token}`);
    try {
      const response = await this.#fetch(url, { method, headers, body, signal, redirect: "manual", ...(dispatcher && { dispatcher }) });
      const succeeded = response.ok || response.status === 304; // the response to If-None-Match
      const text = streamed && succeeded ? "" : await response.text();
      if (!succeeded) throw failureOf(response, text);
      return {
        data: streamed ? response : text === "" ? undefined : JSON.parse(text),
        status: response.status,
        headers: response.headers,
        requestId: response.headers.get("x-request-id") ?? undefined,
        replayed: response.headers.get("idempotent-replayed") === "true",
        text,
      };
    } catch (error) {
      if (error instanceof HoldfastError) throw error;
      throw new ConnectionError(error instanceof SyntaxError ? "The response is not JSON. Check the base URL." : "The connection failed.", {
        cause: error,
      });
    }
  }
}

/** Returns the error of a response. */
function failureOf(response: Response, text: string): APIError {
  let body: Partial<ErrorResponse> | undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null) body = parsed;
  } catch {
    // The response is from a proxy.
  }
  const { status, headers } = response;
  const Class = classOfCode.get(body?.error?.code ?? "") ?? classOfStatus(status);
  return new Class({ status, headers, body });
}

/** Returns a signal that ends an attempt: when its time is over, or with the signal of the call. */
function limit(call: Call): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  const ms = Math.max(0, Math.min(call.timeout, call.end - Date.now()));
  const timer = setTimeout(() => controller.abort(new TimeoutError(`No complete response arrived within ${ms} ms.`)), ms);
  const abort = () => controller.abort(call.signal?.reason);
  if (call.signal?.aborted) abort();
  call.signal?.addEventListener("abort", abort, { once: true });
  const release = () => {
    clearTimeout(timer);
    // The signal of the call also ends a body that is still being read.
    if (!call.streamed) call.signal?.removeEventListener("abort", abort);
  };
  return { signal: controller.signal, release };
}

/** Waits for a value until the signal is aborted. */
async function until<T>(signal: AbortSignal, value: T | Promise<T>): Promise<T> {
  signal.throwIfAborted();
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
  });
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([value, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Returns the properties that have a value. */
function defined<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/** Returns an environment variable, where there is an environment. */
function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}
