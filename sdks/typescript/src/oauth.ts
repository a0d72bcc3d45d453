import { HoldfastError } from "./errors.js";
import type { TokenSource } from "./options.js";

/** The tokens of a grant. */
export interface Tokens {
  accessToken: string;
  /** The next refresh token. The previous one is no longer valid. */
  refreshToken: string;
  /** Time at which the access token expires, in milliseconds since 1970. */
  expiresAt: number;
  /** The scopes of the access token, separated by spaces. */
  scope?: string | undefined;
}

/** Settings of an {@link OAuthTokenSource}. */
export interface OAuthOptions {
  /** Address of the token endpoint, `{auth_url}/oauth/token`. */
  tokenURL: string;
  clientId: string;
  /** The newest tokens of the grant. You can leave out the access token. */
  tokens: { refreshToken: string; accessToken?: string | undefined; expiresAt?: number | undefined; scope?: string | undefined };
  /**
   * Stores new tokens. The new access token is not used before it returns. Store them durably: if the new refresh token is lost,
   * the operator must consent again.
   */
  store: (tokens: Tokens) => void | Promise<void>;
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Dispatcher of the package `undici`, as in the options of the client. */
  dispatcher?: object | undefined;
}

/** The token endpoint returned an error. If `code` is `invalid_grant`, the grant has ended: request consent again. */
export class OAuthError extends HoldfastError {
  readonly code: string;

  constructor(code: string, description: string) {
    super(description);
    this.code = code;
  }
}

/** Milliseconds before its end at which an access token is replaced. */
const EARLY = 60_000;
const TIMEOUT = 30_000;

/**
 * Supplies the access tokens of a grant, and refreshes them when they expire. Each refresh token is valid once, so use one
 * source per grant, in one process.
 */
export class OAuthTokenSource implements TokenSource {
  readonly #options: OAuthOptions;
  #tokens: OAuthOptions["tokens"];
  /** The new tokens, until they are stored. */
  #unsaved: Tokens | undefined;
  #pending: Promise<string> | undefined;

  constructor(options: OAuthOptions) {
    this.#options = options;
    this.#tokens = options.tokens;
  }

  /** Returns the access token. Concurrent calls share one refresh, which continues if one of them is canceled. */
  async token(rejected?: string): Promise<string> {
    const { accessToken, expiresAt = Number.POSITIVE_INFINITY } = this.#tokens;
    if (!this.#pending && !this.#unsaved && accessToken && accessToken !== rejected && expiresAt > Date.now() + EARLY) {
      return accessToken;
    }
    this.#pending ??= this.#renew().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  /** Refreshes and stores the tokens. If the last tokens were not stored, it only stores them. */
  async #renew(): Promise<string> {
    this.#unsaved ??= await this.#refresh();
    const tokens = this.#unsaved;
    this.#tokens = tokens;
    await this.#options.store(tokens);
    this.#unsaved = undefined;
    return tokens.accessToken;
  }

  /** Exchanges the refresh token. The request is not repeated, because a refresh token that is used twice ends the grant. */
  async #refresh(): Promise<Tokens> {
    const { tokenURL, clientId, fetch = globalThis.fetch, dispatcher } = this.#options;
    const { refreshToken } = this.#tokens;
    const sent = Date.now();
    const response = await fetch(tokenURL, {
      method: "POST",
      headers: { accept: "application/json", "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ grant_type: "refresh_token", client_id: clientId, refresh_token: refreshToken }).toString(),
      signal: AbortSignal.timeout(TIMEOUT),
      ...(dispatcher && { dispatcher }),
    });
    const body = (await response.json().catch(() => ({}))) as Record<string, string | number | undefined>;
    if (!response.ok || typeof body.access_token !== "string") {
      const description = body.error_description ?? `The token endpoint returned status ${response.status}.`;
      throw new OAuthError(`${body.error ?? "unknown"}`, `${description}`);
    }
    return {
      accessToken: body.access_token,
      refreshToken: `${body.refresh_token ?? refreshToken}`,
      expiresAt: sent + Number(body.expires_in ?? 3600) * 1000,
      scope: body.scope === undefined ? undefined : `${body.scope}`,
    };
  }
}
