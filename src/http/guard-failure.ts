/**
 * The reason why a request to a customer's address failed, as shown to the customer: a class, never
 * an address or a banner. Otherwise callers could use the gateway to map the operator's network.
 *
 * - `blocked_address`: the host is not on the public internet.
 * - `dns`, `connect`, `tls`: that step failed; nothing was sent.
 * - `timeout`: a deadline passed.
 * - `reset`: the connection broke, or the reply was not HTTP; the request may have been received.
 * - `too_large`: the reply exceeds the limit.
 * - `aborted`: cancelled by the gateway.
 */
export type GuardFailureKind =
  | "blocked_address"
  | "dns"
  | "connect"
  | "tls"
  | "timeout"
  | "reset"
  | "too_large"
  | "aborted";

/** A request without a complete reply. Message and cause are for the operator's log. */
export class GuardFailure extends Error {
  readonly kind: GuardFailureKind;

  constructor(kind: GuardFailureKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "GuardFailure";
    this.kind = kind;
  }

  /** Creates the failure of a step, unless a deadline or a cancellation ended that step. */
  static of(error: unknown, kind: GuardFailureKind, signal?: AbortSignal): GuardFailure {
    if (error instanceof GuardFailure) return error;
    if (signal?.aborted === true) {
      const isDeadline = signal.reason instanceof Error && signal.reason.name === "TimeoutError";
      return new GuardFailure(isDeadline ? "timeout" : "aborted", kind, error);
    }
    return new GuardFailure(kind, error instanceof Error ? error.message : String(error), error);
  }
}
