/** One attempt at a vendor: its slot, its answer, and what it uses of its credential's limits. */
import type { GatewayError } from "../core/errors.ts";
import type { VendorReply } from "../provider/reply.ts";
import type { Ticket } from "../limits/limiter.ts";
import type { Destination, RequestAmount } from "./attempt-plan.ts";
import type { AttemptFailure } from "./breaker.ts";
import type { Targets } from "./targets.ts";
import { hasQuota, type QuotaMark, VendorQuota } from "./vendor-quota.ts";

/** The result of one attempt. */
export type AttemptResult = OpenReply | FailedAttempt;

/** An attempt without an answer for the customer. */
export interface FailedAttempt {
  readonly error: GatewayError;
  /**
   * The failure for routing; undefined if the customer's request is at fault or may be running: no
   * other route is tried.
   */
  readonly failure: AttemptFailure | undefined;
  /** The pause that the vendor requested; undefined if there is none. */
  readonly retryAfterMs?: number | undefined;
  /** Whether the vendor may have worked for it, and may charge for it. */
  readonly isSent: boolean;
}

/** A vendor's answer for the customer. */
export interface OpenReply {
  readonly destination: Destination;
  readonly reply: VendorReply;
  /**
   * The vendor's whole answer, if it refused the request as invalid; undefined means it accepted.
   */
  readonly refusal: VendorRefusalBody | undefined;
  readonly error?: undefined;
  /**
   * The tokens that the vendor has counted, to be set before {@link close}; undefined if unknown.
   */
  usedTokens: number | undefined;
  /** Records that the answer is usable: its first content, or its whole body, has come. */
  succeeded(): void;
  /**
   * Records that the answer broke before its first content. @throws the error itself if it is no
   * vendor's failure
   */
  failed(error: unknown): FailedAttempt;
  /** Releases the vendor's slot, and stops a vendor whose reply has not ended. Call it once. */
  close(): void;
}

export interface VendorRefusalBody {
  readonly error: GatewayError;
  readonly body: Buffer;
}

/** The receiver of an attempt's result. */
interface AttemptOwner {
  readonly targets: Pick<Targets, "clock">;
  /** Records a usable answer of an attempt that began at `startMs`. */
  succeeded(destination: Destination, startMs: number, isRefusal: boolean): void;
  /**
   * Classifies an error. @throws the error itself if it was aborted, or is not a failure of the
   * vendor
   */
  failed(error: unknown, destination: Destination): FailedAttempt;
  /** Ends an attempt towards the limits of its credential. */
  endLimit(ticket: Ticket | undefined, usedTokens: number | undefined): void;
}

/** An attempt under way, then the vendor's answer: one object, because every call has one. */
export class Attempt implements OpenReply {
  readonly destination: Destination;
  readonly error?: undefined;
  reply!: VendorReply;
  refusal: VendorRefusalBody | undefined;
  usedTokens: number | undefined;
  readonly #upstream: AttemptOwner;
  readonly #startMs = performance.now();
  readonly #ticket: Ticket | undefined;
  #mark: QuotaMark | undefined;
  #isClosed = false;

  constructor(upstream: AttemptOwner, destination: Destination, ticket: Ticket | undefined) {
    this.#upstream = upstream;
    this.#ticket = ticket;
    this.destination = destination;
    const { route, credential } = destination;
    route.owner.inFlight++;
    route.inFlight++;
    credential.inFlight++;
  }

  /** Takes the request from what its vendor said that it takes. */
  countSent(amount: RequestAmount): void {
    const { route, credential } = this.destination;
    this.#mark = route.quotas.get(credential)?.sent(amount.typical) ?? noMark;
  }

  /** Learns what the vendor still takes; only if there are other candidates. */
  readQuota(headers: VendorReply["headers"]): void {
    if (this.#mark === undefined || !hasQuota(headers)) return;
    const { route, credential } = this.destination;
    let quota = route.quotas.get(credential);
    if (quota === undefined) route.quotas.set(credential, (quota = new VendorQuota()));
    quota.received(headers, this.#mark, this.#upstream.targets.clock());
  }

  answered(reply: VendorReply, refusal?: VendorRefusalBody): this {
    this.reply = reply;
    this.refusal = refusal;
    return this;
  }

  succeeded(): void {
    this.#upstream.succeeded(this.destination, this.#startMs, this.refusal !== undefined);
  }

  failed(error: unknown): FailedAttempt {
    return this.#upstream.failed(error, this.destination);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.reply?.body.cancel();
    const { route, credential } = this.destination;
    route.owner.inFlight--;
    route.inFlight--;
    credential.inFlight--;
    // A refused request has used nothing.
    const isRefused = this.refusal !== undefined;
    this.#upstream.endLimit(this.#ticket, isRefused ? 0 : this.usedTokens);
  }
}

const noMark: QuotaMark = { requests: 0, tokens: 0 };
