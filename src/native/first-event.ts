/**
 * Looks at the first event of a vendor's stream before anything is passed on: some vendors tell of trouble with
 * the operator's account inside a reply of 200 (R-ERR-3).
 */
import { join } from "../core/bytes.ts";
import { nativeFaultWaitMs, refusalBytesMax } from "../config/limits.ts";
import { EventSplitter } from "../dialect/sse/event-stream.ts";
import type { Vendor, VendorBody, VendorReply } from "../vendor/vendor.ts";

/** The reply; where its first event is such trouble, or it is a refusal in form of an event, that event's JSON. */
export async function withoutFault(vendor: Vendor, reply: VendorReply): Promise<VendorReply> {
  const { status, headers, body } = reply;
  if (!(headers["content-type"] ?? "").startsWith("text/event-stream")) return reply;
  const isRefused = status < 200 || status > 299;
  const { pieces, data, pending } = await firstEvent(body);
  const told = isRefused ? status : 400;
  const isFault = data !== undefined && vendor.faultOf?.(told, data) !== undefined;
  if (data === undefined || (!isFault && !isRefused)) {
    return { ...reply, body: new BegunBody(pieces, body, pending) };
  }
  body.cancel();
  const type = { "content-type": "application/json" };
  return { status: told, headers: { ...headers, ...type }, body: new BegunBody([data], undefined) };
}

interface FirstEvent {
  /** What was read to find it. */
  readonly pieces: readonly Buffer[];
  /** Its data; `undefined`: it has none, or is too long to be such trouble. */
  readonly data: Buffer | undefined;
  /** The read that is under way; `undefined`: none is. */
  readonly pending?: Promise<boolean>;
}

/** What a vendor takes its time for is no such trouble: who waits for it learns that it was begun. */
async function firstEvent(body: VendorBody): Promise<FirstEvent> {
  let pieces: readonly Buffer[] = [];
  const late = new Late();
  try {
    for (let bytes = 0; bytes < refusalBytesMax; ) {
      const pending = body.ready();
      const isReady = await Promise.race([pending, late.comes]);
      if (isReady === undefined) return { pieces, data: undefined, pending: quiet(pending) };
      if (!isReady) break;
      pieces = [...pieces, ...body.take()];
      bytes = pieces.reduce((sum, { length }) => sum + length, 0);
      const data = dataIn(join(pieces));
      if (data !== undefined) return { pieces, data };
    }
    return { pieces, data: undefined };
  } finally {
    late.stop();
  }
}

/** The end of the wait. A timer that is cleared: one that is aborted makes an error with its stack for each stream. */
class Late {
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

/** Whoever reads on learns of its failure. */
function quiet(pending: Promise<boolean>): Promise<boolean> {
  pending.catch(() => {});
  return pending;
}

/** The data of the first event that has any; `undefined`: none is complete. */
function dataIn(bytes: Buffer): Buffer | undefined {
  const splitter = new EventSplitter(refusalBytesMax);
  const source = splitter.begin([bytes]);
  for (let at = 0; ; ) {
    const place = splitter.next(at);
    if (place === undefined) return undefined;
    at = place.end;
    if (place.dataLines > 0) return Buffer.from(source.subarray(place.dataStart, place.dataEnd));
  }
}

/** A body of which the beginning has been read. */
class BegunBody implements VendorBody {
  #begun: readonly Buffer[];
  readonly #body: VendorBody | undefined;
  #pending: Promise<boolean> | undefined;

  constructor(begun: readonly Buffer[], body: VendorBody | undefined, pending?: Promise<boolean>) {
    this.#begun = begun;
    this.#body = body;
    this.#pending = pending;
  }

  async ready(): Promise<boolean> {
    if (this.#begun.length > 0) return true;
    const pending = this.#pending ?? this.#body?.ready();
    this.#pending = undefined;
    return (await pending) ?? false;
  }

  take(): readonly Buffer[] {
    const begun = this.#begun;
    this.#begun = [];
    return begun.length > 0 ? begun : (this.#body?.take() ?? []);
  }

  async whole(bytesMax: number): Promise<Buffer> {
    await this.#pending;
    const begun = join(this.take());
    const rest = await this.#body?.whole(bytesMax);
    return rest === undefined ? begun : join([begun, rest]);
  }

  cancel(): void {
    this.#body?.cancel();
  }
}
