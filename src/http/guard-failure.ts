/** Why a request to a customer's address got no reply. */

/**
 * What the customer may learn: a class, never an address or a banner, or the gateway would map the operator's
 * network for whoever asks.
 *
 * - `blocked_address`: the host is not of the public internet.
 * - `dns`, `connect`, `tls`: that step failed; nothing was sent.
 * - `timeout`: the whole took too long.
 * - `reset`: the connection broke, or the reply was not HTTP; the request may have been read.
 * - `too_large`: the reply is longer than allowed.
 * - `aborted`: our own doing.
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

/** A request without a whole reply. The message and the cause are for the operator's log. */
export class GuardFailure extends Error {
  readonly kind: GuardFailureKind;

  constructor(kind: GuardFailureKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "GuardFailure";
    this.kind = kind;
  }

  /** Names an error by the step it came from, unless a deadline or the caller ended the step. */
  static of(error: unknown, kind: GuardFailureKind, signal: AbortSignal): GuardFailure {
    if (error instanceof GuardFailure) return error;
    if (signal.aborted) {
      const isDeadline = signal.reason instanceof Error && signal.reason.name === "TimeoutError";
      return new GuardFailure(isDeadline ? "timeout" : "aborted", kind, error);
    }
    return new GuardFailure(kind, error instanceof Error ? error.message : String(error), error);
  }
}
