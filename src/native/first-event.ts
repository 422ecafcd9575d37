/**
 * Checks the first event of a vendor's stream before anything is passed on: some vendors report a
 * fault of the operator's account inside a 200 reply (R-ERR-3).
 */
import { nativeFaultWaitMs, refusalBytesMax } from "../core/limits.ts";
import { joinBuffers } from "../core/bytes.ts";
import { EventDataReader } from "../wire/sse/event-stream.ts";
import type { VendorBody, VendorReply } from "../provider/reply.ts";
import type { Vendor } from "../provider/vendor.ts";

/**
 * The reply. Where its first event reports such a fault, or the reply is a refusal as an event,
 * that event as JSON.
 */
export async function unwrapFirstEventError(
  vendor: Vendor,
  reply: VendorReply,
): Promise<VendorReply> {
  const { status, headers, body } = reply;
  if (!(headers["content-type"] ?? "").startsWith("text/event-stream")) return reply;
  const isRefused = status < 200 || status > 299;
  const { pieces, data, pending } = await firstEvent(body);
  const told = isRefused ? status : 400;
  const isFault = data !== undefined && vendor.faultOf?.(told, data) !== undefined;
  if (data === undefined || (!isFault && !isRefused)) {
    return { ...reply, body: new ResumedBody(pieces, body, pending) };
  }
  body.cancel();
  const type = { "content-type": "application/json" };
  return {
    status: told,
    headers: { ...headers, ...type },
    body: new ResumedBody([data], undefined),
  };
}

interface FirstEvent {
  /** The bytes that were read to find it. */
  readonly pieces: readonly Buffer[];
  /** Its data; undefined if it has none, or is too long to be such a fault. */
  readonly data: Buffer | undefined;
  /** The read in progress; undefined if there is none. */
  readonly pending?: Promise<boolean>;
}

/**
 * Reads the first event, for a short time: a fault is reported at once, and the client of a slow
 * reply gets its head.
 */
async function firstEvent(body: VendorBody): Promise<FirstEvent> {
  const pieces: Buffer[] = [];
  const reader = new EventDataReader();
  const late = new WaitLimit();
  try {
    for (let bytes = 0; bytes < refusalBytesMax; ) {
      const pending = body.ready();
      const isReady = await Promise.race([pending, late.comes]);
      if (isReady === undefined)
        return { pieces, data: undefined, pending: ignoreRejection(pending) };
      if (!isReady) break;
      const taken = body.take();
      for (const piece of taken) bytes += piece.length;
      pieces.push(...taken);
      const data = reader.readFirst(taken);
      if (data !== undefined) return { pieces, data: Buffer.from(data) };
    }
    return { pieces, data: undefined };
  } finally {
    late.stop();
  }
}

/**
 * Limits the wait. A plain timer: an aborted signal creates an error with its stack for each
 * stream.
 */
class WaitLimit {
  readonly comes: Promise<undefined>;
  #timer: NodeJS.Timeout | undefined;

  constructor() {
    this.comes = new Promise((resolve) => {
      this.#timer = setTimeout(resolve, nativeFaultWaitMs, undefined);
    });
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** Prevents an unhandled rejection: the next read reports the failure. */
function ignoreRejection(pending: Promise<boolean>): Promise<boolean> {
  pending.catch(() => {});
  return pending;
}

/** A body whose beginning has been read. */
class ResumedBody implements VendorBody {
  #begun: readonly Buffer[];
  readonly #body: VendorBody | undefined;
  #pending: Promise<boolean> | undefined;

  constructor(begun: readonly Buffer[], body: VendorBody | undefined, pending?: Promise<boolean>) {
    this.#begun = begun;
    this.#body = body;
    this.#pending = pending;
  }

  ready(): Promise<boolean> {
    if (this.#begun.length > 0) return Promise.resolve(true);
    const pending = this.#pending ?? this.#body?.ready();
    this.#pending = undefined;
    return pending ?? Promise.resolve(false);
  }

  take(): readonly Buffer[] {
    const begun = this.#begun;
    this.#begun = [];
    return begun.length > 0 ? begun : (this.#body?.take() ?? []);
  }

  async whole(bytesMax: number): Promise<Buffer> {
    await this.#pending;
    const begun = joinBuffers(this.take());
    const rest = await this.#body?.whole(bytesMax);
    return rest === undefined ? begun : joinBuffers([begun, rest]);
  }

  cancel(): void {
    this.#body?.cancel();
  }
}
