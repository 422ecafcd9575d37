import { CallEnding } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { type Usage, UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { CallFacts } from "../../billing/calls/call-record.ts";
import type { AttemptRow } from "../../billing/calls/call-row.ts";
import type { UnitUsage } from "../../billing/prices/price.ts";
import { ErrorCode, type GatewayError } from "../../core/errors.ts";

/** What is known of a call from its first moment. */
export interface CallStart {
  /** Our own UUIDv7. */
  readonly id: string;
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  /** The account's discount in hundredths of a percent, 0 to 10,000: the same from hold to charge. */
  readonly discountBp: number;
  /** What the key may spend in its life, in nano-USD. Default: no limit. */
  readonly keyLimitNanos?: bigint | undefined;
  readonly path: string;
}

/** One call while it runs: what is known of it so far. Its record is made of it by `callRecord`. */
export class Call implements CallFacts {
  readonly start: CallStart;
  readonly startedAt = new Date();
  model = "";
  vendor = "";
  stream = false;
  status = 0;
  errorCode = "";
  ending: CallEnding = CallEnding.UNSPECIFIED;
  usage: Usage | undefined;
  /** What was made beside text; `undefined`: nothing. */
  units: UnitUsage | undefined;
  usageSource: UsageSource = UsageSource.UNSPECIFIED;
  costNanos = 0n;
  /** Whether the usage is charged. */
  isCharged = false;
  /** What the vendor takes of the operator; `undefined`: not known. */
  vendorCostNanos: bigint | undefined;
  /** Set once money is held: the call must then be settled. */
  heldNanos: bigint | undefined;
  priceVersion = "";
  upstreamRequestId = "";
  /** What could not be carried between two styles. */
  dropped: readonly string[] = [];

  readonly #startMs = performance.now();
  #firstByteMs = 0;
  #attemptMs = 0;
  /** The vendors that could not take it; `undefined`, as for nearly every call: none. */
  #attempts: AttemptRow[] | undefined;
  #failedMs = 0;
  #answeredMs = 0;
  #relayedMs = 0;

  constructor(start: CallStart) {
    this.start = start;
  }

  /** The vendor is being asked; with several routes, the last time counts. */
  attempting(vendor: string): void {
    this.vendor = vendor;
    this.#attemptMs = performance.now();
  }

  /** A vendor could not take it, whether it was asked or not. */
  failed(vendor: string, error: GatewayError): void {
    const nowMs = performance.now();
    const wasSent = this.#attemptMs > this.#failedMs;
    this.#attempts ??= [];
    this.#attempts.push({
      vendor,
      error_code: error.meaning.word,
      duration_ms: wasSent ? Math.max(1, Math.round(nowMs - this.#attemptMs)) : 0,
    });
    this.#failedMs = nowMs;
  }

  /** The vendor's first content is here. */
  answered(): void {
    if (this.#firstByteMs !== 0) return;
    this.#answeredMs = performance.now();
    this.#firstByteMs = this.#answeredMs - this.#startMs;
  }

  /** The first content has been passed on. */
  relayed(): void {
    if (this.#relayedMs === 0) this.#relayedMs = performance.now();
  }

  /** The call ended, whoever is to blame. The first ending counts. */
  end(ending: CallEnding, error?: GatewayError): void {
    if (this.ending !== CallEnding.UNSPECIFIED) return;
    this.ending = ending;
    if (error === undefined) return;
    this.errorCode = error.meaning.word;
    if (this.status === 0) this.status = error.status;
  }

  /** The call failed, and its client is still there to be told. */
  endFailed(error: GatewayError): void {
    if (this.heldNanos === undefined) {
      this.end(CallEnding.REFUSED, error);
      return;
    }
    const isOurs = error.code === ErrorCode.INTERNAL_ERROR;
    this.end(isOurs ? CallEnding.GATEWAY_FAILED : CallEnding.UPSTREAM_FAILED, error);
  }

  /** When it started, in milliseconds since 1970: its price is the one that counted then. */
  get startMs(): number {
    return this.startedAt.getTime();
  }

  /** Milliseconds from start to now. */
  get durationMs(): number {
    return performance.now() - this.#startMs;
  }

  /** Milliseconds from start to the first content; 0 where none came. */
  get firstByteMs(): number {
    return this.#firstByteMs;
  }

  /** The gateway's own milliseconds before the vendor was asked and after it had answered. */
  get overheadMs(): number {
    if (this.#attemptMs === 0) return this.durationMs;
    const after = this.#relayedMs === 0 ? 0 : this.#relayedMs - this.#answeredMs;
    return this.#attemptMs - this.#startMs + after;
  }

  /** Attempts that failed; `undefined`, as for nearly every call: none. */
  get attempts(): readonly AttemptRow[] | undefined {
    return this.#attempts;
  }

  get id(): string {
    return this.start.id;
  }

  get requestId(): string {
    return this.start.requestId;
  }

  get accountId(): string {
    return this.start.accountId;
  }

  get keyId(): string {
    return this.start.keyId;
  }

  get path(): string {
    return this.start.path;
  }

  get discountBp(): number {
    return this.start.discountBp;
  }
}
