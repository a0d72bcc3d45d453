import type { ErrorResponse } from "./types.gen.js";

/** Base class of all errors that this package creates. */
export class HoldfastError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The request failed before a complete response arrived. It may have had an effect. */
export class ConnectionError extends HoldfastError {
  /** Key of the write that failed. To find out whether it ran, repeat it with this key. A read has none. */
  idempotencyKey: string | undefined;
}

/** The response did not arrive in time. The request may have had an effect. */
export class TimeoutError extends ConnectionError {}

/** The signature of a webhook delivery is missing, wrong, or too old. Do not act on the delivery. */
export class SignatureError extends HoldfastError {}

/** What an {@link APIError} is created from. */
export interface Failure {
  readonly status: number;
  readonly headers: Headers;
  /** Body of the response, if it is JSON in the format of the API. */
  readonly body: Partial<ErrorResponse> | undefined;
}

/** The API returned an error. Branch on `code`, or on the class with `instanceof`. */
export class APIError extends HoldfastError {
  /** HTTP status of the response. */
  readonly status: number;
  /** Stable code of the error, such as `slot_unavailable`. It is `unknown` if the response is not from the API. */
  readonly code: string;
  /** Class of the error, such as `validation_error`. */
  readonly type: string | undefined;
  /** Name of the first invalid field, parameter or header. Only a 422 has it. */
  readonly param: string | undefined;
  /** Messages by field. Only a 422 has them. */
  readonly errors: Readonly<Record<string, readonly string[]>>;
  /** ID of the request. Include it when you contact support. */
  readonly requestId: string | undefined;
  /** Address of the paragraph about the code in the documentation. */
  readonly docUrl: string | undefined;
  readonly headers: Headers;
  /** The whole body of the response, with fields that this version does not know. */
  readonly body: Partial<ErrorResponse> | undefined;

  constructor(failure: Failure) {
    const error = failure.body?.error;
    super(error?.message ?? `The server returned status ${failure.status}.`);
    this.status = failure.status;
    this.code = error?.code ?? "unknown";
    this.type = error?.type;
    this.param = error?.param;
    this.errors = failure.body?.errors ?? {};
    this.requestId = error?.request_id ?? failure.headers.get("x-request-id") ?? undefined;
    this.docUrl = error?.doc_url;
    this.headers = failure.headers;
    this.body = failure.body;
  }
}

/** 400: the request is malformed. */
export class BadRequestError extends APIError {}

/** 401: the credential is missing, unknown, revoked or expired. */
export class AuthenticationError extends APIError {}

/** 403: the credential may not do this. */
export class PermissionError extends APIError {}

/** 404: the resource does not exist. */
export class NotFoundError extends APIError {}

/** 409: the request conflicts with the state of the resource. */
export class ConflictError extends APIError {}

/** 412: the resource has changed since the version in `ifMatch`. */
export class PreconditionError extends APIError {}

/** 422: a field, parameter or header is invalid, or the state does not allow the request. */
export class ValidationError extends APIError {}

/** 429: too many requests. */
export class RateLimitError extends APIError {}

/** 5xx: the server failed. */
export class ServerError extends APIError {}

/** Constructor of an error class. */
export type ErrorClass = new (failure: Failure) => APIError;

const byStatus: Readonly<Record<number, ErrorClass>> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  412: PreconditionError,
  422: ValidationError,
  429: RateLimitError,
};

/** Returns the class of all errors with a status. */
export function classOfStatus(status: number): ErrorClass {
  return byStatus[status] ?? (status >= 500 ? ServerError : APIError);
}
