/** One call while it runs: what has become of it so far, and the record it ends as. */
import { CallEnding } from "../../gen/uas/billing/v1/billing_pb.ts";
import { type Usage, UsageSource } from "../../gen/uas/type/v1/usage_pb.ts";
import type { CallRow } from "../billing/call-row.ts";
import { GatewayError } from "../errors.ts";

/** What is known of a call from its first moment. */
export interface CallStart {
  /** Our own UUIDv7. */
  readonly id: string;
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly path: string;
}

/** The longest text of a client that is kept in a record, in characters. */
const textCharsMax = 256;

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
  usageSource: UsageSource = UsageSource.UNSPECIFIED;
  costNanos = 0n;
  /** Set once money is held: the call must then be settled. */
  heldNanos: bigint | undefined;
  priceVersion = "";
  upstreamRequestId = "";
  /** What could not be carried between two styles. */
  dropped: readonly string[] = [];

  readonly #startMs = performance.now();
  #firstByteMs = 0;
  #askedMs = 0;
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

  /** The record. Texts of the client are cut, and freed of what the database cannot store. */
  toRow(): CallRow {
    const { usage } = this;
    return {
      id: this.start.id,
      request_id: this.start.requestId,
      account_id: this.start.accountId,
      key_id: this.start.keyId,
      model: storable(this.model),
      vendor: this.vendor,
      path: storable(this.start.path),
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
      upstream_request_id: storable(this.upstreamRequestId),
      dropped: storable(this.dropped.join(",")),
    };
  }
}

/** PostgreSQL stores neither NUL nor half a surrogate pair. */
function storable(text: string): string {
  // Most texts are plain: only the others pay for the replacement.
  if (text.length <= textCharsMax && /^[\x20-\x7e]*$/.test(text)) return text;
  return text
    .slice(0, textCharsMax)
    .toWellFormed()
    .replace(/\p{Cc}/gu, "\ufffd");
}
