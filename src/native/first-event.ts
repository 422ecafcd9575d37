/**
 * Looks at the first event of a vendor's stream before anything is passed on: some vendors tell of trouble with
 * the operator's account inside a reply of 200 (R-ERR-3).
 */
import { join } from "../bytes.ts";
import { refusalBytesMax } from "../config/limits.ts";
import { EventSplitter } from "../dialect/event-stream.ts";
import type { Vendor, VendorBody, VendorReply } from "../vendor/vendor.ts";

/** The reply; where its first event is such trouble, or it is a refusal in form of an event, that event's JSON. */
export async function withoutFault(vendor: Vendor, reply: VendorReply): Promise<VendorReply> {
  const { status, headers, body } = reply;
  if (!(headers["content-type"] ?? "").startsWith("text/event-stream")) return reply;
  const isRefused = status < 200 || status > 299;
  const { pieces, data } = await firstEvent(body);
  const told = isRefused ? status : 400;
  const isFault = data !== undefined && vendor.faultOf?.(told, data) !== undefined;
  if (data === undefined || (!isFault && !isRefused)) {
    return { ...reply, body: new BegunBody(pieces, body) };
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
}

async function firstEvent(body: VendorBody): Promise<FirstEvent> {
  let pieces: readonly Buffer[] = [];
  let bytes = 0;
  while (bytes < refusalBytesMax && (await body.ready())) {
    pieces = [...pieces, ...body.take()];
    bytes = pieces.reduce((sum, { length }) => sum + length, 0);
    const splitter = new EventSplitter(refusalBytesMax);
    const source = splitter.begin([join(pieces)]);
    for (let at = 0; ; ) {
      const place = splitter.next(at);
      if (place === undefined) break;
      at = place.end;
      if (place.dataLines === 0) continue;
      return { pieces, data: Buffer.from(source.subarray(place.dataStart, place.dataEnd)) };
    }
  }
  return { pieces, data: undefined };
}

/** A body of which the beginning has been read. */
class BegunBody implements VendorBody {
  #begun: readonly Buffer[];
  readonly #body: VendorBody | undefined;

  constructor(begun: readonly Buffer[], body: VendorBody | undefined) {
    this.#begun = begun;
    this.#body = body;
  }

  async ready(): Promise<boolean> {
    return this.#begun.length > 0 || (await (this.#body?.ready() ?? false));
  }

  take(): readonly Buffer[] {
    const begun = this.#begun;
    this.#begun = [];
    return begun.length > 0 ? begun : (this.#body?.take() ?? []);
  }

  async whole(bytesMax: number): Promise<Buffer> {
    const begun = join(this.take());
    const rest = await this.#body?.whole(bytesMax);
    return rest === undefined ? begun : join([begun, rest]);
  }

  cancel(): void {
    this.#body?.cancel();
  }
}
