import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { type Usage, UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { CallFacts } from "../../billing/calls/call-record.ts";
import type { AttemptRow } from "../../billing/calls/call-row.ts";
import type { PriceConfig } from "../../config/config.ts";
import type { UnitUsage } from "../../billing/prices/cost.ts";
import type { LimitRefusal, Ticket } from "../../limits/limiter.ts";
import { ErrorCode, type GatewayError } from "../../core/errors.ts";
import type { CallTrace } from "./call-trace.ts";
import type { Destination } from "../../routing/attempt-plan.ts";

/** The facts of a call that are known when it starts. */
export interface CallStart {
  /** The gateway's id of the call, a UUIDv7. */
  readonly id: string;
  /** Start in milliseconds since 1970. The prices of that time apply. */
  readonly startMs: number;
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  /**
   * The account's discount in hundredths of a percent, 0 to 10,000: the same from hold to charge.
   */
  readonly discountBp: number;
  /** The key's total spend limit, in nano-USD. Default: no limit. */
  readonly keyLimitNanos?: bigint | undefined;
  readonly path: string;
}

/** The state of a running call. `callRecord` builds its record from it. */
export class Call implements CallFacts {
  readonly start: CallStart;
  readonly startedAt: Date;
  model = "";
  vendor = "";
  stream = false;
  status = 0;
  errorCode = "";
  ending: CallEnding = CallEnding.UNSPECIFIED;
  usage: Usage | undefined;
  /** Billable units other than tokens; undefined if there is none. */
  units: UnitUsage | undefined;
  usageSource: UsageSource = UsageSource.UNSPECIFIED;
  costNanos = 0n;
  /** Part of the vendor's figures that exceeds what the request and its reply can cost. */
  implausibleNanos = 0n;
  /** Whether the call has a record of its own; false for a refused call that only counts. */
  hasOwnRecord = true;
  /** Whether the usage is charged. */
  isCharged = false;
  /** Price that the vendor charges the operator; undefined if unknown. */
  vendorCostNanos: bigint | undefined;
  /** Set once money is held: the call must then be settled. */
  heldNanos: bigint | undefined;
  /**
   * Verdict of the rate and concurrency limits; undefined if there are none. The limits must be
   * notified when an admitted call ends.
   */
  limiting: Promise<Ticket | LimitRefusal> | undefined;
  /** Remaining limits as reply headers; undefined if there are no limits. */
  limitHeaders: Readonly<Record<string, string>> | undefined;
  /** Whether budgets limit the call: it may cost only what is held. */
  isBudgeted = false;
  priceVersion = "";
  /** The price of the service tier that it is charged by. Absent for the price of the call. */
  tierPrice: PriceConfig | undefined;
  upstreamRequestId = "";
  /**
   * Request members that the vendor's style could not carry, and reply members that the caller's
   * could not.
   */
  dropped: readonly string[] = [];
  /** Undefined if the call is not traced. */
  trace: CallTrace | undefined;

  readonly #startMs = performance.now();
  #firstByteMs = 0;
  #attemptMs = 0;
  /** Failed attempts, and the answered one if there was a choice; undefined if there are none. */
  #attempts: AttemptRow[] | undefined;
  #failedMs = 0;
  #answeredMs = 0;
  #relayedMs = 0;

  constructor(start: CallStart) {
    this.start = start;
    this.startedAt = new Date(start.startMs);
  }

  /** Records the start of an attempt; with several routes, the last one counts. */
  attempting(vendor: string): void {
    this.vendor = vendor;
    this.#attemptMs = performance.now();
  }

  /**
   * Records a failed attempt, whether or not a request was sent.
   *
   * @param possibleCostNanos maximum that the vendor may charge for it; undefined if nothing or
   * unknown
   */
  failed(
    { route, credential }: Destination,
    { failure, error }: { readonly failure: string; readonly error: GatewayError | undefined },
    possibleCostNanos: bigint | undefined,
  ): void {
    const nowMs = performance.now();
    const wasSent = this.#attemptMs > this.#failedMs;
    this.#attempts ??= [];
    this.#attempts.push({
      vendor: route.vendor,
      model: route.model,
      credential: credential.credential,
      error_code: error?.meaning.word ?? "upstream_error",
      failure,
      duration_ms: wasSent ? Math.max(1, Math.round(nowMs - this.#attemptMs)) : 0,
      ...(possibleCostNanos !== undefined && { vendor_cost: possibleCostNanos.toString() }),
    });
    this.#failedMs = nowMs;
    this.#firstByteMs = 0;
  }

  /** Records the attempt that was answered, if there were others to choose from. */
  answeredBy({ route, credential }: Destination): void {
    this.#attempts ??= [];
    this.#attempts.push({
      vendor: route.vendor,
      model: route.model,
      credential: credential.credential,
      duration_ms: Math.max(1, Math.round(performance.now() - this.#attemptMs)),
    });
  }

  /** Records the arrival of the first content. */
  answered(): void {
    if (this.#firstByteMs !== 0) return;
    this.#answeredMs = performance.now();
    this.#firstByteMs = this.#answeredMs - this.#startMs;
  }

  /** Records that the first content was sent to the caller. */
  relayed(): void {
    if (this.#relayedMs === 0) this.#relayedMs = performance.now();
  }

  /** Records the ending of the call. The first ending counts. */
  end(ending: CallEnding, error?: GatewayError): void {
    if (this.ending !== CallEnding.UNSPECIFIED) return;
    this.ending = ending;
    if (error === undefined) return;
    this.errorCode = error.meaning.word;
    if (this.status === 0) this.status = error.status;
  }

  /**
   * Records that a reply that was delivered is charged only in part, because no more could be held.
   */
  endClamped(error: GatewayError): void {
    if (this.ending === CallEnding.COMPLETED) this.ending = CallEnding.UNSPECIFIED;
    this.end(CallEnding.OUT_OF_BALANCE, error);
  }

  /** Records a failure that is reported to a client that is still connected. */
  endFailed(error: GatewayError): void {
    if (this.heldNanos === undefined) {
      this.end(CallEnding.REFUSED, error);
      return;
    }
    const isOurs = error.code === ErrorCode.INTERNAL_ERROR;
    this.end(isOurs ? CallEnding.GATEWAY_FAILED : CallEnding.UPSTREAM_FAILED, error);
  }

  /** Start in milliseconds since 1970: the price in force then applies. */
  get startMs(): number {
    return this.start.startMs;
  }

  /** Milliseconds from start to now. */
  get durationMs(): number {
    return performance.now() - this.#startMs;
  }

  /** Milliseconds from start to the first content; 0 without content. */
  get firstByteMs(): number {
    return this.#firstByteMs;
  }

  /** Milliseconds since the first content; 0 without content. */
  get contentMs(): number {
    return this.#answeredMs === 0 ? 0 : performance.now() - this.#answeredMs;
  }

  /**
   * Milliseconds spent in the gateway: before the last attempt, and between the first content's
   * arrival and sending.
   */
  get overheadMs(): number {
    if (this.#attemptMs === 0) return this.durationMs;
    const after = this.#relayedMs === 0 ? 0 : this.#relayedMs - this.#answeredMs;
    return this.#attemptMs - this.#startMs + after;
  }

  /** Failed attempts, and the answered one if there was a choice; undefined if there are none. */
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
