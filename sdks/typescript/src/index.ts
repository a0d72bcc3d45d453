/**
 * Client of the Holdfast booking API.
 *
 * @packageDocumentation
 */

export * from "./client.gen.js";
export { Client } from "./client.js";
export * from "./errors.gen.js";
export {
  APIError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  ConnectionError,
  HoldfastError,
  NotFoundError,
  PermissionError,
  PreconditionError,
  RateLimitError,
  ServerError,
  SignatureError,
  TimeoutError,
  ValidationError,
} from "./errors.js";
export type { AnyEvent, UnknownEvent } from "./events.js";
export { OAuthError, type OAuthOptions, OAuthTokenSource, type Tokens } from "./oauth.js";
export type { ClientOptions, ConditionalOptions, RequestOptions, TokenSource, WriteOptions } from "./options.js";
export { type Page, Pages } from "./pages.js";
export { APIPromise, type APIResponse } from "./promise.js";
export type { Input, Method } from "./request.js";
export { EventStream, type StreamOptions } from "./stream.js";
export type * from "./types.gen.js";
export { VERSION } from "./version.gen.js";
export * as webhooks from "./webhooks.js";
