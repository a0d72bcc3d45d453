import type { WebhookEvent } from "./types.gen.js";

/**
 * A type that this version does not know. Its values are strings. It is an enumeration only so that the comparison of `type` with a
 * known type excludes it.
 */
declare enum UnknownType {
  value = "",
}

/** An event whose type this version does not know. */
export interface UnknownEvent extends Omit<WebhookEvent, "data" | "type"> {
  /** Type of the event, a string. */
  type: UnknownType;
  data: { object: Record<string, unknown>; previous_attributes: Record<string, unknown> };
}

/** An event. Its `type` determines the type of `data.object`. */
export type AnyEvent = UnknownEvent | WebhookEvent;
