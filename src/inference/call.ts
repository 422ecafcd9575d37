/** One call while it runs: what has become of it so far, and the record it ends as. */
import { CallEnding } from "../../gen/uas/billing/v1/billing_pb.ts";
import { type Usage, UsageSource } from "../../gen/uas/type/v1/usage_pb.ts";
import { callText } from "../billing/call-json.ts";
import type { AttemptRow, CallRow } from "../billing/call-row.ts";
import { secondMicros, type UnitUsage } from "../billing/price.ts";
import { GatewayError } from "../errors.ts";
import type { RunStart } from "./run-options.ts";

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

/** What is known of a call when its run begins. */
export function callStart({ callId, context }: RunStart, path: string): CallStart {
  const { requestId, caller } = context;
  const { accountId, keyId, keyLimitNanos, discountBp = 0 } = caller;
  return { id: callId, requestId, accountId, keyId, keyLimitNanos, discountBp, path };
}

export class Call {
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
  #askedMs = 0;
  /** The vendors that could not take it; `undefined`, as for nearly every call: none. */
  #attempts: AttemptRow[] | undefined;
  #failedMs = 0;
  #answeredMs = 0;
  #passedMs = 0;

  constructor(start: CallStart) {
    this.start = start;
  }

  /** The vendor is being asked; with several routes, the last time counts. */
  asked(vendor: string): void {
    this.vendor = vendor;
    this.#askedMs = performance.now();
  }

  /** A vendor could not take it, whether it was asked or not. */
  failed(vendor: string, error: GatewayError): void {
    const nowMs = performance.now();
    const wasAsked = this.#askedMs > this.#failedMs;
    this.#attempts ??= [];
    this.#attempts.push({
      vendor,
      error_code: error.meaning.word,
      duration_ms: wasAsked ? Math.max(1, Math.round(nowMs - this.#askedMs)) : 0,
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
  passed(): void {
    if (this.#passedMs === 0) this.#passedMs = performance.now();
  }

  /** The call ended, whoever is to blame. The first ending counts. */
  end(ending: CallEnding, error?: GatewayError): void {
    if (this.ending !== CallEnding.UNSPECIFIED) return;
    this.ending = ending;
    if (error === undefined) return;
    this.errorCode = error.meaning.word;
    if (this.status === 0) this.status = error.status;
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
    if (this.#askedMs === 0) return this.durationMs;
    const after = this.#passedMs === 0 ? 0 : this.#passedMs - this.#answeredMs;
    return this.#askedMs - this.#startMs + after;
  }

  /** The record. Texts of the client are cut here already: it may wait a while. */
  toRow(): CallRow {
    const { usage } = this;
    const row: CallRow = {
      id: this.start.id,
      request_id: this.start.requestId,
      account_id: this.start.accountId,
      key_id: this.start.keyId,
      model: callText(this.model),
      vendor: this.vendor,
      path: callText(this.start.path),
      stream: this.stream,
      status: this.status,
      error_code: this.errorCode,
      ending: this.ending,
      usage_source: this.usageSource,
      input_tokens: usage?.inputTokens ?? 0,
      cached_input_tokens: usage?.cachedInputTokens ?? 0,
      cache_write_tokens: usage?.cacheWriteTokens ?? 0,
      output_tokens: usage?.outputTokens ?? 0,
      reasoning_tokens: usage?.reasoningTokens ?? 0,
      cost: this.costNanos.toString(),
      held: (this.heldNanos ?? 0n).toString(),
      price_version: this.priceVersion,
      start_time: this.startedAt.toISOString(),
      duration_ms: Math.round(this.durationMs),
      first_byte_ms: Math.round(this.#firstByteMs),
      upstream_request_id: callText(this.upstreamRequestId),
      dropped: callText(this.dropped.join(",")),
      discount_bp: this.start.discountBp,
      charged: this.isCharged,
      images: this.units?.images ?? null,
      second_micros: this.units?.seconds ? secondMicros(this.units.seconds) : null,
      vendor_cost: this.vendorCostNanos?.toString() ?? null,
    };
    // Left out where there are none: records of calls that one vendor took are not longer for it.
    return this.#attempts === undefined ? row : { ...row, attempts: this.#attempts };
  }
}
