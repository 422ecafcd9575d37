/**
 * Measures files that are a sequence of frames: MP3, AAC (ADTS) and FLAC. Each frame states its own
 * length and rate, and decoders believe nothing else. Like decoders, the measurement searches on
 * behind bytes that are no frame.
 */
import { mp3Frame, tagBytes } from "../../wire/json/recording.ts";
import { type Measurement, readPadded, windowBytes } from "./source.ts";

/** A frame of audio. */
interface Frame {
  readonly bytes: number;
  readonly seconds: number;
  /** The fields that are equal in all frames of a stream. */
  readonly kind: number;
}

/** A format whose frames state their length in bytes. */
export interface FrameFormat {
  /** Bytes of a frame's header. */
  readonly headerBytes: number;
  /** Reads the header at a position; `undefined` if there is none. */
  read(file: Buffer, at: number): Frame | undefined;
}

/** MP3: MPEG 1, 2 and 2.5, layer III. */
export const mp3Frames: FrameFormat = {
  headerBytes: 4,
  read(file, at) {
    const head = file.readUInt32BE(at);
    const frame = mp3Frame(head);
    // Version, layer and sample rate: the bits that decoders compare, too.
    return frame && { ...frame, kind: head & 0x001e_0c00 };
  },
};

const aacRates = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
  7_350,
];

/** AAC in ADTS frames: 1,024 samples in each block. */
export const aacFrames: FrameFormat = {
  headerBytes: 7,
  read(file, at) {
    if (file[at] !== 0xff || ((file[at + 1] ?? 0) & 0xf6) !== 0xf0) return undefined;
    const rate = aacRates[((file[at + 2] ?? 0) >> 2) & 0x0f];
    const bytes = (file.readUInt32BE(at + 3) >>> 13) & 0x1fff;
    if (rate === undefined || bytes < 7) return undefined;
    const seconds = (1_024 * (((file[at + 6] ?? 0) & 0x03) + 1)) / rate;
    // MPEG version, profile, sample rate and channels.
    return { bytes, seconds, kind: file.readUInt32BE(at) & 0x0008_fdc0 };
  },
};

/** Frames between two positions, and the bytes of those that were counted. */
interface CountedFrames {
  readonly seconds: number;
  readonly bytes: number;
}

/**
 * Adds up the frames between two positions. A frame counts if another one follows it directly, or
 * if it has the kind of the previous frames: a player finds it behind any junk. Before
 * `strictUntil` only the first condition counts, because images in tags contain bytes that look
 * like frames.
 */
function* countFrames(
  format: FrameFormat,
  { start, end, strictUntil }: { start: number; end: number; strictUntil: number },
): Measurement<CountedFrames> {
  const { headerBytes } = format;
  let seconds = 0;
  let bytes = 0;
  let kind: number | undefined;
  let passedOver: Frame | undefined;
  for (let from = start; from + headerBytes <= end; ) {
    const part = yield { position: from, length: Math.min(windowBytes, end - from) };
    const isLast = part.length < windowBytes || from + part.length >= end;
    let at = 0;
    while (at >= 0 && at + headerBytes <= part.length) {
      const frame = format.read(part, at);
      if (frame === undefined) {
        at = part.indexOf(0xff, at + 1);
        continue;
      }
      const next = at + frame.bytes;
      const isInside = next + headerBytes <= part.length;
      // The next window begins with this frame.
      if (!isInside && !isLast && at > 0) break;
      const isFollowed = isInside
        ? format.read(part, next)?.kind === frame.kind
        : isLast && next === part.length;
      const isChained =
        isFollowed && !hidesFrames(format, frame, part.subarray(at, next + headerBytes));
      const isAlike = frame.kind === kind || frame.kind === passedOver?.kind;
      if (isChained || (isAlike && from + at >= strictUntil)) {
        for (const each of passedOver?.kind === frame.kind ? [passedOver, frame] : [frame]) {
          seconds += each.seconds;
          bytes += each.bytes;
        }
        kind = frame.kind;
        passedOver = undefined;
      } else passedOver = frame;
      // The header of a frame that nothing follows may be junk that hides frames.
      at = isChained ? next : part.indexOf(0xff, at + 1);
    }
    if (isLast) break;
    from += at < 0 ? part.length - headerBytes + 1 : Math.max(at, 1);
  }
  return { seconds, bytes };
}

/**
 * Whether frames follow each other inside a frame: then its header is junk, before the frames of
 * the file.
 */
function hidesFrames(format: FrameFormat, { kind }: Frame, bytes: Buffer): boolean {
  const last = bytes.length - format.headerBytes;
  for (let at = bytes.indexOf(0xff, 1); at >= 0 && at < last; at = bytes.indexOf(0xff, at + 1)) {
    const frame = format.read(bytes, at);
    if (frame?.kind !== kind || at + frame.bytes > last) continue;
    if (format.read(bytes, at + frame.bytes)?.kind === kind) return true;
  }
  return false;
}

/**
 * The length of a file of MP3 or AAC frames in seconds. `undefined` if less than half of it is
 * frames: then it is another format. The figures of VBR headers (`Xing`, `VBRI`) do not count.
 */
export function* framesSeconds(format: FrameFormat, bytes: number): Measurement {
  const tagEnd = yield* leadingTagEnd(bytes);
  const counted = yield* countFrames(format, { start: 0, end: bytes, strictUntil: tagEnd });
  const mediaBytes = bytes - tagEnd - (yield* trailingTagBytes(bytes));
  if (counted.seconds === 0 || counted.bytes * 2 < mediaBytes) return undefined;
  return counted.seconds;
}

/** The length of the frames in a part of a file, such as a chunk. */
export function* partSeconds(
  format: FrameFormat,
  { start, end }: { readonly start: number; readonly end: number },
): Measurement {
  const { seconds } = yield* countFrames(format, { start, end, strictUntil: start });
  return seconds === 0 ? undefined : seconds;
}

/** The end of an ID3v2 tag at the start of a file; 0 without one. */
export function* leadingTagEnd(bytes: number): Measurement<number> {
  const head = yield* readPadded(0, 10);
  if (head.toString("latin1", 0, 3) !== "ID3") return 0;
  return Math.min(bytes, 10 + tagBytes(head.readUInt32BE(6)));
}

/** The bytes of tags at the end of a file: ID3v1, and APE before it. */
function* trailingTagBytes(bytes: number): Measurement<number> {
  const tail = yield { position: Math.max(0, bytes - 160), length: 160 };
  const id3 = tail.length >= 128 && tail.toString("latin1", tail.length - 128).startsWith("TAG");
  const id3Bytes = id3 ? 128 : 0;
  const foot = tail.length - id3Bytes - 32;
  if (foot < 0 || tail.toString("latin1", foot, foot + 8) !== "APETAGEX") return id3Bytes;
  return Math.min(bytes, id3Bytes + 32 + tail.readUInt32LE(foot + 12));
}

/** Longest header of a FLAC frame. */
const flacHeaderBytes = 16;

/**
 * Sample rates of FLAC by their code; the others are written in the frame or in the stream
 * information.
 */
const flacRates = [
  0, 88_200, 176_400, 192_000, 8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000,
];

/**
 * The samples of all frames of a FLAC file. The sample count of the stream information does not
 * count: encoders of streams leave it open, and players play on. A frame is known by the checksum
 * of its header.
 *
 * @param start the position of `fLaC`
 */
export function* flacSeconds(start: number, bytes: number): Measurement {
  const info = yield* readPadded(start, 26);
  if (info.toString("latin1", 0, 4) !== "fLaC") return undefined;
  const streamRate = info.readUIntBE(18, 3) >> 4;
  let seconds = 0;
  for (let from = start + 4; from < bytes; from += windowBytes) {
    const part = yield { position: from, length: windowBytes + flacHeaderBytes };
    const end = Math.min(part.length, windowBytes);
    for (let at = part.indexOf(0xff); at >= 0 && at < end; at = part.indexOf(0xff, at + 1)) {
      const frame = flacFrame(part, at);
      if (frame === undefined) continue;
      const rates = [frame.rate, streamRate].filter((rate) => rate > 0);
      // Programs differ in which of two rates they believe.
      if (rates.length > 0) seconds += frame.samples / Math.min(...rates);
    }
  }
  return seconds === 0 ? undefined : seconds;
}

/** Reads the header of a FLAC frame (RFC 9639, 9.1); `undefined` if there is none. */
function flacFrame(
  file: Buffer,
  at: number,
): { readonly samples: number; readonly rate: number } | undefined {
  const head = file.subarray(at, at + flacHeaderBytes);
  if (head.length < 6 || ((head[1] ?? 0) & 0xfe) !== 0xf8) return undefined;
  const [codes = 0, layout = 0, number = 0] = head.subarray(2);
  const sizeCode = codes >> 4;
  const rateCode = codes & 0x0f;
  const isReserved = sizeCode === 0 || rateCode === 15 || layout >> 4 > 10;
  if (isReserved || ((layout >> 1) & 7) === 3 || (layout & 1) === 1) return undefined;
  // The number is encoded like a UTF-8 character: leading ones count its bytes.
  const ones = Math.clz32((~number & 0xff) << 24);
  if (ones === 1 || ones === 8) return undefined;
  const sizeAt = 4 + Math.max(1, ones);
  const sizeBytes = sizeCode === 6 ? 1 : sizeCode === 7 ? 2 : 0;
  const rateBytes = rateCode === 12 ? 1 : rateCode > 12 ? 2 : 0;
  const length = sizeAt + sizeBytes + rateBytes;
  if (length >= head.length || checksum8(head.subarray(0, length)) !== head[length]) {
    return undefined;
  }
  const size = sizeBytes === 0 ? 0 : head.readUIntBE(sizeAt, sizeBytes);
  const rate = rateBytes === 0 ? 0 : head.readUIntBE(sizeAt + sizeBytes, rateBytes);
  return { samples: samplesOf(sizeCode, size), rate: rateOf(rateCode, rate) };
}

function samplesOf(code: number, written: number): number {
  if (code === 1) return 192;
  if (code <= 5) return 576 * 2 ** (code - 2);
  return code <= 7 ? written + 1 : 256 * 2 ** (code - 8);
}

/** The rate in samples a second; 0 if it is the one of the stream. */
function rateOf(code: number, written: number): number {
  if (code <= 11) return flacRates[code] ?? 0;
  return written * (code === 12 ? 1_000 : code === 13 ? 1 : 10);
}

/** The checksum of headers: polynomial x^8 + x^2 + x + 1. */
function checksum8(bytes: Uint8Array): number {
  let sum = 0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = ((sum << 1) ^ (sum & 0x80 ? 0x07 : 0)) & 0xff;
  }
  return sum;
}
