import type { Client } from "./client.js";
import { APIError, ConnectionError, HoldfastError } from "./errors.js";
import type { RequestOptions } from "./options.js";
import type { Page } from "./pages.js";
import { canRetry, delay, sleep } from "./retry.js";

/** Settings of an event stream. */
export interface StreamOptions extends RequestOptions {
  /**
   * ID of the last event that you processed, which must be of the last 30 days. The stream continues after it. Without it, the
   * stream starts now.
   */
  lastEventId?: string | undefined;
  /** Milliseconds without data after which the stream reconnects. Defaults to 60 seconds; the server sends something every 15. */
  idleTimeout?: number | undefined;
  /** How many failures in a row end the stream. By default, it reconnects without a limit. */
  maxRetries?: number | undefined;
  /** Is called before the stream reconnects because of an error. */
  onReconnect?: ((error: unknown) => void) | undefined;
}

const LONGEST_WAIT = 30_000;
const LONGEST_MESSAGE = 16 << 20;

/**
 * Events as they happen. The stream reconnects and continues after the last event, so that you get each event once, until you
 * leave the loop or abort its signal. It fails only if the server rejects it, or after `maxRetries` failures in a row if you set
 * that option.
 */
export class EventStream<T extends { id: string }> implements AsyncIterable<T> {
  readonly #client: Client;
  readonly #path: string;
  readonly #query: object | undefined;
  readonly #options: StreamOptions;
  #last: string | undefined;
  #wait = 1000;

  constructor(client: Client, path: string, query: object | undefined, options: StreamOptions = {}) {
    this.#client = client;
    this.#path = path;
    this.#query = query;
    this.#options = options;
    this.#last = options.lastEventId;
  }

  /** ID of the last event that was received. Store it with the results, and pass it as `lastEventId` to the next stream. */
  get lastEventId(): string | undefined {
    return this.#last;
  }

  /** Iterates over the events. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    const { signal, onReconnect, maxRetries = Number.POSITIVE_INFINITY } = this.#options;
    // Events between two connections must not be lost: the first connection also starts after an event, if there is one.
    this.#last ??= (await this.#events({ limit: 1 }))[0]?.id;
    for (let failures = 0; ; ) {
      let wait = this.#wait;
      try {
        for await (const event of this.#connection()) {
          failures = 0;
          yield event;
        }
        wait = this.#wait;
      } catch (error) {
        signal?.throwIfAborted();
        const asked = delay(error, 1);
        if (++failures > maxRetries || !canRetry(error) || asked === undefined) throw error;
        wait = Math.max(error instanceof APIError ? asked : 0, Math.min(LONGEST_WAIT, this.#wait * 2 ** (failures - 1)));
        onReconnect?.(error);
      }
      await sleep(wait, signal);
    }
  }

  /** Returns a page of past events of the same types. */
  async #events(query: object): Promise<T[]> {
    const page = await this.#client.request<Page<T>>("GET", "/events", { query: { ...this.#query, ...query } }, this.#options);
    return page.data;
  }

  /** Yields the events of one connection. */
  async *#connection(): AsyncGenerator<T, void, undefined> {
    const controller = new AbortController();
    const { signal, headers, idleTimeout = 60_000 } = this.#options;
    signal?.throwIfAborted();
    const abort = () => controller.abort(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    try {
      const response = await this.#client.raw(
        "GET",
        this.#path,
        { query: this.#query, accept: "text/event-stream" },
        {
          ...this.#options,
          maxRetries: 0,
          signal: controller.signal,
          headers: { ...headers, ...(this.#last !== undefined && { "last-event-id": this.#last }) },
        },
      );
      if (!response.body || !response.headers.get("content-type")?.startsWith("text/event-stream")) {
        throw new HoldfastError("The response is not an event stream. Check the base URL.");
      }
      if (this.#last === undefined) {
        // There was no event when the first connection was opened. If there is one now, continue after it.
        const [first] = await this.#events({ limit: 1, sort: "updated_at" });
        if (first) {
          this.#last = first.id;
          yield first;
          return;
        }
      }
      for await (const message of messages(response.body, idleTimeout)) {
        if (message.retry !== undefined) this.#wait = message.retry;
        if (message.data === "") continue;
        const event = JSON.parse(message.data) as T;
        this.#last = message.id ?? event.id;
        yield event;
      }
    } finally {
      signal?.removeEventListener("abort", abort);
      controller.abort();
    }
  }
}

/** A message of the format text/event-stream. */
interface Message {
  data: string;
  id?: string;
  retry?: number;
}

/** Yields the messages of a stream. A message that is not complete at the end is discarded, as the HTML standard says. */
async function* messages(body: ReadableStream<Uint8Array>, idle: number): AsyncGenerator<Message, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let message: Message = { data: "" };
  try {
    for (;;) {
      const { done, value } = await withinTime(reader.read(), idle);
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      // A carriage return at the end may be the first half of a line break.
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line !== "") {
          add(message, line);
          continue;
        }
        yield message;
        message = { data: "" };
      }
      if (rest.length + message.data.length > LONGEST_MESSAGE) throw new HoldfastError("A message of the event stream is too long.");
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Adds a line to a message. Lines of comments have an empty name. */
function add(message: Message, line: string): void {
  const [, name, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
  if (name === "data") message.data += (message.data && "\n") + value;
  else if (name === "id" && value) message.id = value;
  else if (name === "retry" && /^\d+$/.test(value)) message.retry = Number(value);
}

/** Waits for a read. It fails if nothing arrives in time, or if the connection fails. */
async function withinTime<T>(read: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silent = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new ConnectionError(`The event stream sent nothing for ${ms} ms.`)), ms);
  });
  try {
    return await Promise.race([read, silent]);
  } catch (cause) {
    throw cause instanceof ConnectionError ? cause : new ConnectionError("The event stream was interrupted.", { cause });
  } finally {
    clearTimeout(timer);
  }
}
