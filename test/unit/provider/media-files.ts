/**
 * Recordings as encoders write them, with content that no decoder would like but whose structure is
 * right.
 */
import { box } from "./video-file.ts";

/** Bytes without a pattern, the same for a seed. */
export function noise(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed >>> 0 || 1;
  for (let i = 0; i < length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = state & 0xff;
  }
  return bytes;
}

/** A recording in parts, between which junk may stand. */
export interface Recording {
  readonly head: Buffer;
  readonly parts: readonly Buffer[];
  readonly seconds: number;
}

/** The bytes of a recording. */
export function bytesOf({ head, parts }: Recording): Buffer {
  return Buffer.concat([head, ...parts]);
}

/** The fields of a WAV that may lie. */
export interface WavFields {
  readonly byteRate?: number;
  readonly blockBytes?: number;
  readonly dataBytes?: number;
}

/** Samples of 16 bits. */
export function wav(
  seconds: number,
  { rate = 16_000, channels = 1 } = {},
  fields: WavFields = {},
): Buffer {
  const data = noise(Math.round(seconds * rate) * channels * 2);
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + data.length, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(fields.byteRate ?? rate * channels * 2, 28);
  head.writeUInt16LE(fields.blockBytes ?? channels * 2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36);
  head.writeUInt32LE(fields.dataBytes ?? data.length, 40);
  return Buffer.concat([head, data]);
}

/**
 * MPEG 2 layer III, 24,000 samples a second, 64 kbit/s, as speech comes; the rates differ if they
 * vary.
 */
export function mp3(frames: number, isVaried = false): Recording {
  const parts = Array.from({ length: frames }, (_, index) => {
    // 64, 80, 96 or 32 kbit/s.
    const code = [0x8, 0x9, 0xa, 0x4][isVaried ? index % 4 : 0] ?? 0;
    const kilobits = { 8: 64, 9: 80, 10: 96, 4: 32 }[code] ?? 0;
    const frame = noise(3 * kilobits, index + 1);
    frame.writeUInt32BE((0xff_f3_04_c4 | (code << 12)) >>> 0);
    return frame;
  });
  return { head: Buffer.alloc(0), parts, seconds: (frames * 576) / 24_000 };
}

/** AAC-LC in ADTS frames, 16,000 samples a second. */
export function aac(frames: number): Recording {
  const parts = Array.from({ length: frames }, (_, index) => {
    const frame = noise(180 + (index % 40), index + 1);
    Buffer.from([0xff, 0xf1, 0x60, 0x40, 0, 0x1f, 0xfc]).copy(frame);
    frame[3] = 0x40 | (frame.length >> 11);
    frame[4] = (frame.length >> 3) & 0xff;
    frame[5] = ((frame.length & 7) << 5) | 0x1f;
    return frame;
  });
  return { head: Buffer.alloc(0), parts, seconds: (frames * 1_024) / 16_000 };
}

/**
 * FLAC with blocks of 4,096 samples at 16,000 samples a second. @param samples those that the head
 * states
 */
export function flac(frames: number, samples = frames * 4_096): Recording {
  const head = Buffer.alloc(42);
  head.write("fLaC", "latin1");
  head.writeUInt32BE(0x8000_0022, 4);
  head.writeUIntBE(16_000 << 4, 18, 3);
  head.writeUInt8(0xf0, 21);
  head.writeUInt32BE(samples, 22);
  const parts = Array.from({ length: frames }, (_, index) => {
    const number = index < 128 ? [index] : [0xc0 | (index >> 6), 0x80 | (index & 0x3f)];
    const start = Buffer.from([0xff, 0xf8, 0xc5, 0x08, ...number]);
    return Buffer.concat([start, Buffer.from([checksum8(start)]), noise(700, index + 1)]);
  });
  return { head, parts, seconds: (frames * 4_096) / 16_000 };
}

function checksum8(bytes: Buffer): number {
  let sum = 0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = sum & 0x80 ? ((sum << 1) ^ 0x107) & 0xff : sum << 1;
  }
  return sum;
}

/** A page of Ogg. */
export function oggPage(
  packets: readonly Buffer[],
  { granule, index = 0, flags = 0 }: { granule: bigint; index?: number; flags?: number },
): Buffer {
  const segments = packets.flatMap(({ length }) => [
    ...Array.from({ length: Math.floor(length / 255) }, () => 255),
    length % 255,
  ]);
  const head = Buffer.alloc(27);
  head.write("OggS", "latin1");
  head[5] = flags;
  head.writeBigInt64LE(granule, 6);
  head.writeUInt32LE(7, 14);
  head.writeUInt32LE(index, 18);
  head[26] = segments.length;
  const page = Buffer.concat([head, Buffer.from(segments), ...packets]);
  page.writeUInt32LE(checksum32(page), 22);
  return page;
}

function checksum32(bytes: Buffer): number {
  let sum = 0;
  for (const byte of bytes) {
    sum ^= byte << 24;
    for (let bit = 0; bit < 8; bit++) sum = sum < 0 ? (sum << 1) ^ 0x04c1_1db7 : sum << 1;
  }
  return sum >>> 0;
}

/**
 * Opus with frames of 20 ms, 10 in each page. @param granuleOf the position that a page states, by
 * the true one
 */
export function opus(pages: number, granuleOf = (samples: number) => samples): Recording {
  const identity = Buffer.alloc(19);
  identity.write("OpusHead", "latin1");
  identity[8] = 1;
  identity[9] = 1;
  identity.writeUInt16LE(312, 10);
  const tags = Buffer.concat([Buffer.from("OpusTags"), Buffer.alloc(30)]);
  const head = Buffer.concat([
    oggPage([identity], { granule: 0n, flags: 2 }),
    oggPage([tags], { granule: 0n, index: 1 }),
  ]);
  const parts = Array.from({ length: pages }, (_, page) => {
    const packets = Array.from({ length: 10 }, (_unused, index) => {
      const packet = noise(80, page * 10 + index + 1);
      // Speech in wide band, one frame of 20 ms.
      packet[0] = 9 << 3;
      return packet;
    });
    const granule = BigInt(granuleOf((page + 1) * 9_600));
    return oggPage(packets, { granule, index: page + 2 });
  });
  return { head, parts, seconds: (pages * 9_600 - 312) / 48_000 };
}

/** Statements of a movie's tables, which replace the truth. */
export interface MovieFields {
  readonly movieUnits?: number;
  readonly mediaUnits?: number;
  readonly sampleUnits?: number;
  readonly mediaScale?: number;
}

function full(name: string, ...words: readonly number[]): Buffer {
  const content = Buffer.alloc(4 + words.length * 4);
  for (const [index, value] of words.entries()) content.writeUInt32BE(value, 4 + index * 4);
  return box(name, content);
}

/** A description of AAC-LC, 16,000 samples a second. */
const aacDescription = (() => {
  const entry = Buffer.alloc(28);
  entry.writeUInt16BE(1, 6);
  entry.writeUInt16BE(1, 16);
  entry.writeUInt16BE(16, 18);
  entry.writeUInt16BE(16_000, 24);
  const config = Buffer.from([0x05, 2, 0x14, 0x08]);
  const decoder = Buffer.concat([
    Buffer.from([0x04, 0x80, 0x80, 13 + config.length, 0x40, 0x15]),
    Buffer.alloc(11),
    config,
  ]);
  const stream = Buffer.concat([Buffer.from([0x03, 3 + decoder.length, 0, 1, 0]), decoder]);
  const esds = box("esds", Buffer.concat([Buffer.alloc(4), stream]));
  const mp4a = box("mp4a", Buffer.concat([entry, esds]));
  return box("stsd", Buffer.concat([Buffer.from([0, 0, 0, 0, 0, 0, 0, 1]), mp4a]));
})();

/** An AAC recording in MP4. @param samples of the track; each has 1,024 values */
export function movie(samples: number, fields: MovieFields = {}): Recording {
  const { mediaScale = 16_000, sampleUnits = 1_024 } = fields;
  const tables = box(
    "stbl",
    Buffer.concat([
      aacDescription,
      full("stts", 1, samples, sampleUnits),
      full("stsz", 0, samples, ...Array.from({ length: samples }, () => 200)),
    ]),
  );
  const handler = Buffer.alloc(24);
  handler.write("soun", 8, "latin1");
  const media = box(
    "mdia",
    Buffer.concat([
      full("mdhd", 0, 0, mediaScale, fields.mediaUnits ?? samples * 1_024, 0),
      box("hdlr", handler),
      box("minf", tables),
    ]),
  );
  const track = box("trak", Buffer.concat([full("tkhd", 0, 0, 1, 0, samples), media]));
  const movieUnits = fields.movieUnits ?? samples * 64;
  const tableBox = box("moov", Buffer.concat([full("mvhd", 0, 0, 1_000, movieUnits), track]));
  const head = box("ftyp", Buffer.from("M4A \0\0\x02\0isommp41"));
  return {
    head,
    parts: [tableBox, box("mdat", noise(samples * 200))],
    seconds: (samples * 1_024) / 16_000,
  };
}

/**
 * The same in fragments of 10 samples, as recorders in browsers write it. @param units the time
 * that each states
 */
export function fragmentedMovie(fragments: number, units = 1_024): Recording {
  const { head, parts } = movie(0, { movieUnits: 0, mediaUnits: 0 });
  const [tables = Buffer.alloc(0)] = parts;
  const defaults = box("mvex", full("trex", 1, 1, units, 200, 0));
  const extended = box("moov", Buffer.concat([tables.subarray(8), defaults]));
  const moof = (): Buffer =>
    box("moof", box("traf", Buffer.concat([full("tfhd", 1), full("trun", 10)])));
  return {
    head: Buffer.concat([head, extended]),
    parts: Array.from({ length: fragments }, (_, index) =>
      Buffer.concat([moof(), box("mdat", noise(2_000, index + 1))]),
    ),
    seconds: (fragments * 10 * 1_024) / 16_000,
  };
}

/** An element of Matroska. @param size default: that of the content; `open`: it is not known */
export function element(id: string, content: Buffer, size?: "open"): Buffer {
  const length = Buffer.alloc(8);
  length.writeUIntBE(content.length, 2, 6);
  length[0] = 1;
  const open = Buffer.from("01ffffffffffffff", "hex");
  return Buffer.concat([Buffer.from(id, "hex"), size === "open" ? open : length, content]);
}

/** Statements of a Matroska recording, which replace the truth. */
export interface MatroskaFields {
  readonly codec?: string;
  /** Nanoseconds of a tick. Default: a millisecond. */
  readonly scale?: number;
  /** Milliseconds of a cluster of 10 frames. Default: 200. */
  readonly clusterMs?: number;
  /**
   * Whether the last frames of a cluster share a block, and by which flags. Default: each has its
   * own.
   */
  readonly lacing?: "xiph" | "equal" | "relative";
}

function whole(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Opus in WebM, as recorders in browsers write it: frames of 20 ms, 10 in each cluster. */
export function webm(clusters: number, fields: MatroskaFields = {}): Recording {
  const { codec = "A_OPUS", scale = 1_000_000, clusterMs = 200, lacing } = fields;
  const track = element(
    "ae",
    Buffer.concat([
      element("d7", Buffer.from([1])),
      element("83", Buffer.from([2])),
      element("86", Buffer.from(codec)),
      element("e1", element("b5", Buffer.from("40e7700000000000", "hex"))),
    ]),
  );
  const info = element("1549a966", element("2ad7b1", whole(scale)));
  const segment = Buffer.concat([info, element("1654ae6b", track)]);
  const head = Buffer.concat([
    element("1a45dfa3", element("4282", Buffer.from("webm"))),
    element("18538067", segment, "open"),
  ]);
  const parts = Array.from({ length: clusters }, (_, cluster) => {
    const frames = Array.from({ length: 10 }, (_unused, index) => {
      const frame = noise(300, cluster * 10 + index + 1);
      frame[0] = 9 << 3;
      return frame;
    });
    const blocks =
      lacing === undefined ? frames.map((frame) => block([frame])) : [block(frames, lacing)];
    const time = element("e7", whole(cluster * clusterMs));
    return element("1f43b675", Buffer.concat([time, ...blocks]), "open");
  });
  return { head, parts, seconds: (clusters * 10 * 20) / 1_000 };
}

function block(frames: readonly Buffer[], lacing?: MatroskaFields["lacing"]): Buffer {
  const flags = { xiph: 2, equal: 4, relative: 6, none: 0 }[lacing ?? "none"];
  const others = frames.slice(0, -1);
  const sizes = {
    xiph: others.flatMap(({ length }) => [
      ...Array.from({ length: Math.floor(length / 255) }, () => 255),
      length % 255,
    ]),
    equal: [],
    // 300 in two bytes, then differences of 0 in one.
    relative: [0x41, 0x2c, ...others.slice(1).map(() => 0xbf)],
    none: [],
  }[lacing ?? "none"];
  const laces = lacing === undefined ? [] : [frames.length - 1, ...sizes];
  const head = Buffer.from([0x81, 0, 0, flags, ...laces]);
  return element("a3", Buffer.concat([head, ...frames]));
}
