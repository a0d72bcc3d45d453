import { HoldfastError } from "./errors.js";
import type { APIPromise } from "./promise.js";

/** One page of a list. */
export interface Page<T> {
  data: T[];
  /** Whether there is another page. */
  has_more: boolean;
  /** Send it as `cursor` to get the next page. It is null on the last page. */
  next_cursor: string | null;
}

/**
 * A list. Iterate over it to get all rows: pages are requested when they are needed, and only one page is in memory.
 * No request is sent before the iteration starts.
 */
export class Pages<T> implements AsyncIterable<T> {
  readonly #get: (cursor?: string) => APIPromise<Page<T>>;

  constructor(get: (cursor?: string) => APIPromise<Page<T>>) {
    this.#get = get;
  }

  /** Returns one page: the first one, or the one of the `cursor` in the query. */
  page(): APIPromise<Page<T>> {
    return this.#get();
  }

  /** Iterates over the pages. */
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let page = await this.#get();
    yield page;
    let cursor: string | undefined;
    while (page.has_more) {
      if (!page.next_cursor || page.next_cursor === cursor) {
        throw new HoldfastError("The page says that more rows follow, but has no new cursor.");
      }
      cursor = page.next_cursor;
      page = await this.#get(cursor);
      yield page;
    }
  }

  /** Iterates over the rows of all pages. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }
}
