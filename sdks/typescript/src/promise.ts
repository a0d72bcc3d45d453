/** A response with what is not in its body. */
export interface APIResponse<T> {
  /** The parsed body. */
  readonly data: T;
  readonly status: number;
  readonly headers: Headers;
  /** ID of the request. Include it when you contact support. */
  readonly requestId: string | undefined;
  /** Whether this is the stored response of an earlier request with the same key. */
  readonly replayed: boolean;
  /** The body exactly as it was received. It is empty for downloads. */
  readonly text: string;
}

/** A promise of the body of a response. `withResponse` returns its headers as well. */
export class APIPromise<T> implements Promise<T> {
  readonly #response: Promise<APIResponse<T>>;

  constructor(response: Promise<APIResponse<T>>) {
    this.#response = response;
  }

  /** Returns the body with the status, the headers and the raw text. */
  withResponse(): Promise<APIResponse<T>> {
    return this.#response;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise
  then<A = T, B = never>(
    resolve?: ((value: T) => A | PromiseLike<A>) | null,
    reject?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#response.then(({ data }) => data).then(resolve, reject);
  }

  catch<B = never>(reject?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(undefined, reject);
  }

  finally(callback?: (() => void) | null): Promise<T> {
    return this.then().finally(callback);
  }

  get [Symbol.toStringTag](): string {
    return "APIPromise";
  }
}
