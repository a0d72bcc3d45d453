/** Supplies access tokens, such as an `OAuthTokenSource`. */
export interface TokenSource {
  /**
   * Returns a valid access token. `rejected` is a token that the API has just rejected: return a different one.
   */
  token(rejected?: string): Promise<string> | string;
}

/** Settings of a client. */
export interface ClientOptions {
  /** API key, `svc_live_…` or `svc_test_…`. Defaults to the environment variable `HOLDFAST_API_KEY`. */
  apiKey?: string | undefined;
  /** Supplies OAuth access tokens instead of an API key. */
  tokenSource?: TokenSource | undefined;
  /** Address of the API with `/api/v1`. Defaults to the environment variable `HOLDFAST_BASE_URL`. */
  baseURL?: string | undefined;
  /** Milliseconds that one attempt can take. Defaults to 30 seconds. */
  timeout?: number | undefined;
  /** Milliseconds that a call can take with all its attempts. Defaults to 2 minutes. */
  deadline?: number | undefined;
  /** How often a failed attempt is repeated. Defaults to 2. */
  maxRetries?: number | undefined;
  /** Whether the API rejects fields that it does not know, so that you notice misspelled names. Defaults to true. */
  strict?: boolean | undefined;
  /** Headers that are added to all requests. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
  /**
   * Dispatcher of the package `undici`, which `fetch` of Node.js sends requests with. `new EnvHttpProxyAgent()` uses the proxies of the
   * environment: `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.
   */
  dispatcher?: object | undefined;
}

/** Settings of one call. They replace those of the client. */
export interface RequestOptions {
  /** Cancels the call. It then fails with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** Milliseconds that one attempt can take. */
  timeout?: number | undefined;
  /** Milliseconds that the call can take with all its attempts. */
  deadline?: number | undefined;
  /** How often a failed attempt is repeated. */
  maxRetries?: number | undefined;
  /** Headers that are added to the request. */
  headers?: Readonly<Record<string, string>> | undefined;
}

/** Settings of a call that changes data. */
export interface WriteOptions extends RequestOptions {
  /**
   * Key that identifies the operation for 24 hours. If you repeat a call with the same key, the operation runs only once.
   * By default, each call gets a new key, which all its attempts share.
   */
  idempotencyKey?: string | undefined;
  /** Whether the API rejects fields that it does not know. */
  strict?: boolean | undefined;
}

/** Settings of a call that changes a resource. */
export interface ConditionalOptions {
  /**
   * Version that the resource must have, such as `booking.version`. If it has changed, the call fails with `VersionMismatch`.
   */
  ifMatch?: number | string | undefined;
}
