/** Measures Ogg files with Opus. */
import { type Measurement, windowBytes } from "./source.ts";

/** Bytes of a page's header without its segment table. */
const headerBytes = 27;

/** Longest page: its header, 255 segments, 255 bytes in each. */
const pageBytesMax = headerBytes + 255 + 255 * 255;

/** A page of the container. */
interface Page {
  /** Its end in the part that was read. */
  readonly end: number;
  readonly stream: number;
  /** The number of samples until its end; −1 if no packet ends in it. */
  readonly granule: bigint;
  /** The packets that begin in it. */
  readonly packets: readonly Buffer[];
  readonly isIntact: boolean;
}

/** An Opus stream. */
interface OpusStream {
  skippedSamples: number;
  samples: number;
  granule: bigint;
}

/** Samples a second, in any encoding of Opus. */
const rate = 48_000;

/** Samples of the longest packet: 120 ms. */
const packetSamplesMax = 5_760;

/**
 * The samples of all packets. The position that the last page states only counts if it cuts less
 * than a packet off, as encoders do at the end. `audioStart` is the position of the first page with
 * samples.
 */
export function* opusLength(
  bytes: number,
): Measurement<{ readonly seconds: number; readonly audioStart: number } | undefined> {
  const streams = new Map<number, OpusStream>();
  let audioStart: number | undefined;
  for (let from = 0; from < bytes; ) {
    const part = yield { position: from, length: windowBytes };
    if (part.length === 0) break;
    const isLast = from + part.length >= bytes;
    let at = part.indexOf("OggS", 0, "latin1");
    // A page that may not be complete is read with the next part.
    const lastAt = isLast ? part.length : part.length - pageBytesMax;
    while (at >= 0 && at <= lastAt) {
      const page = readPage(part, at);
      if (page !== undefined && addPage(streams, page)) audioStart ??= from + at;
      // A page with a wrong checksum may hide others.
      at = part.indexOf("OggS", page?.isIntact ? page.end : at + 4, "latin1");
    }
    if (isLast) break;
    from += at >= 0 ? at : part.length - 3;
  }
  const seconds = [...streams.values()].reduce((sum, stream) => sum + secondsOf(stream), 0);
  return audioStart === undefined ? undefined : { seconds, audioStart };
}

function secondsOf({ samples, skippedSamples, granule }: OpusStream): number {
  const isCut = granule <= BigInt(samples) && granule > BigInt(samples - packetSamplesMax);
  return Math.max(0, (isCut ? Number(granule) : samples) - skippedSamples) / rate;
}

/** Adds the packets of a page to its stream. @returns whether there are samples in it */
function addPage(streams: Map<number, OpusStream>, page: Page): boolean {
  let hasSamples = false;
  for (const packet of page.packets) {
    const name = packet.toString("latin1", 0, 8);
    const stream = streams.get(page.stream);
    if (name === "OpusHead" && packet.length >= 12) {
      const skippedSamples = packet.readUInt16LE(10);
      if (stream === undefined) {
        streams.set(page.stream, { skippedSamples, samples: 0, granule: -1n });
      }
    } else if (stream !== undefined && name !== "OpusTags") {
      stream.samples += opusSamples(packet);
      hasSamples = true;
    }
  }
  const stream = streams.get(page.stream);
  if (stream !== undefined && page.granule >= 0n) stream.granule = page.granule;
  return hasSamples;
}

/** Samples of a frame by the configuration of a packet (RFC 6716, 3.1). */
function frameSamples(config: number): number {
  if (config < 12) return [480, 960, 1_920, 2_880][config % 4] ?? 0;
  return config < 16 ? 480 * (1 + (config % 2)) : 120 * 2 ** (config % 4);
}

/**
 * Samples of a packet of Opus, 48,000 a second: its first byte has the length and the number of its
 * frames.
 */
export function opusSamples(packet: Buffer): number {
  const [first, second = 0] = packet;
  if (first === undefined) return 0;
  const frames = [1, 2, 2, second & 0x3f][first & 3] ?? 0;
  return Math.min(packetSamplesMax, frames * frameSamples(first >> 3));
}

function readPage(part: Buffer, at: number): Page | undefined {
  if (at + headerBytes > part.length) return undefined;
  const segments = part[at + 26] ?? 0;
  const bodyStart = at + headerBytes + segments;
  if (bodyStart > part.length) return undefined;
  const packets: Buffer[] = [];
  // The first packet may have begun in the page before.
  let isBegun = ((part[at + 5] ?? 0) & 1) === 1;
  let start = bodyStart;
  let end = bodyStart;
  for (let i = 0; i < segments; i++) {
    const length = part[at + headerBytes + i] ?? 0;
    end += length;
    const isEnd = length < 255;
    if (!isEnd && i < segments - 1) continue;
    if (!isBegun) packets.push(part.subarray(start, end));
    isBegun = false;
    start = end;
  }
  return {
    end,
    stream: part.readUInt32LE(at + 14),
    granule: part.readBigInt64LE(at + 6),
    packets,
    isIntact: end <= part.length && checksum(part, at, end) === part.readUInt32LE(at + 22),
  };
}

/** Remainders of bytes, for the checksum of pages: polynomial 0x04c11db7. */
const remainders = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte << 24;
  for (let bit = 0; bit < 8; bit++) rest = (rest << 1) ^ (rest < 0 ? 0x04c1_1db7 : 0);
  return rest;
});

/** The checksum of a page, whose own field counts as zeros. */
function checksum(part: Buffer, at: number, end: number): number {
  let sum = 0;
  for (let i = at; i < end; i++) {
    const isField = i >= at + 22 && i < at + 26;
    const byte = isField ? 0 : (part[i] as number);
    sum = (sum << 8) ^ (remainders[(sum >>> 24) ^ byte] as number);
  }
  return sum >>> 0;
}
