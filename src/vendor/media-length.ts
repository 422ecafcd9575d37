/** Measures the length of video and audio files. It is charged where the vendor does not state a length. */
import { open, readFile, type FileHandle } from "node:fs/promises";
import { mp3Frame, tagBytes } from "../dialect/json/recording.ts";

/** A file on disk. */
interface LocalFile {
  readonly path: string;
  readonly contentType: string;
  readonly bytes: number;
}

/**
 * The length in seconds; `undefined` where the file does not contain it. Nothing in the file is trusted. @throws
 * where the file cannot be read
 */
export async function fileSeconds(file: LocalFile): Promise<number | undefined> {
  const { path, contentType, bytes } = file;
  if (boxTypes.has(contentType)) {
    const handle = await open(path, "r");
    try {
      return await movieSeconds(readerOf(handle), bytes);
    } finally {
      await handle.close();
    }
  }
  const format = audioFormats.get(contentType);
  if (format === undefined || bytes > audioBytesMax) return undefined;
  return audioSeconds(await readFile(path), format);
}

/** Types whose length is in a box of the file. */
const boxTypes: ReadonlySet<string> = new Set(["video/mp4", "video/quicktime", "audio/mp4"]);

const audioFormats: ReadonlyMap<string, AudioFormat> = new Map([
  ["audio/wav", "wav"],
  ["audio/mpeg", "mp3"],
  ["audio/flac", "flac"],
  ["audio/ogg", "opus"],
  ["audio/aac", "aac"],
]);

/** Longer audio files are not read; an hour is shorter. */
const audioBytesMax = 64 * 1_024 * 1_024;

/** No vendor creates files with more boxes on one level. */
const boxesMax = 4_096;

/** A box, from its content to its end. */
interface Box {
  readonly start: number;
  readonly end: number;
}

/**
 * The length in the movie header, in units that it defines. Fragmented files have 0 there, and the length next to
 * their fragments.
 */
async function movieSeconds(readAt: ReadAt, bytes: number): Promise<number | undefined> {
  const movie = await findBox(readAt, { start: 0, end: bytes }, "moov");
  const head = movie && (await findBox(readAt, movie, "mvhd"));
  if (movie === undefined || head === undefined) return undefined;
  const fields = await read(readAt, head.start, 32);
  const isLong = fields[0] === 1;
  const scale = fields.readUInt32BE(isLong ? 20 : 12);
  const said = isLong ? Number(fields.readBigUInt64BE(24)) : fields.readUInt32BE(16);
  const units = isKnown(said) ? said : await fragmentsUnits(readAt, movie);
  return scale === 0 || units === undefined ? undefined : units / scale;
}

async function fragmentsUnits(readAt: ReadAt, movie: Box): Promise<number | undefined> {
  const rest = await findBox(readAt, movie, "mvex");
  const head = rest && (await findBox(readAt, rest, "mehd"));
  if (head === undefined) return undefined;
  const fields = await read(readAt, head.start, 12);
  const said = fields[0] === 1 ? Number(fields.readBigUInt64BE(4)) : fields.readUInt32BE(4);
  return isKnown(said) ? said : undefined;
}

/** All ones mean an unknown length. */
function isKnown(units: number): boolean {
  return units > 0 && units < 0xffff_ffff;
}

/** Finds the first box of a type on one level. */
async function findBox(readAt: ReadAt, within: Box, type: string): Promise<Box | undefined> {
  let at = within.start;
  for (let count = 0; count < boxesMax && at + 8 <= within.end; count++) {
    const head = await read(readAt, at, 16);
    const short = head.readUInt32BE(0);
    const start = at + (short === 1 ? 16 : 8);
    // Size 0 means the rest of the file; 1 means a 64-bit size after the type.
    const long = short === 1 ? Number(head.readBigUInt64BE(8)) : short;
    const end = short === 0 ? within.end : at + long;
    if (end < start || end > within.end) return undefined;
    if (head.toString("latin1", 4, 8) === type) return { start, end };
    at = end;
  }
  return undefined;
}

/** Reads bytes, padded with zeros beyond the end of the file. */
async function read(readAt: ReadAt, position: number, length: number): Promise<Buffer> {
  const found = await readAt(position, length);
  return found.length === length ? found : Buffer.concat([found], length);
}

/** Reads up to `length` bytes from a position; fewer at the end of the file. */
export type ReadAt = (position: number, length: number) => Promise<Buffer>;

function readerOf(handle: FileHandle): ReadAt {
  return async (position, length) => {
    const bytes = Buffer.alloc(length);
    const { bytesRead } = await handle.read(bytes, 0, length, position);
    return bytes.subarray(0, bytesRead);
  };
}

/** How much of a file is read at once, in bytes. */
const windowBytes = 256 * 1_024;

/**
 * The length of a recording in seconds, by its content, whatever it is called; `undefined` where the file does not tell.
 * Reads at most {@link windowBytes} at once. Nothing in the file is trusted: it may tell too little.
 */
export async function recordingSeconds(readAt: ReadAt, bytes: number): Promise<number | undefined> {
  const head = await readAt(0, windowBytes);
  const seconds = await recordingLength(head, readAt, bytes);
  return seconds !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : undefined;
}

async function recordingLength(
  head: Buffer,
  readAt: ReadAt,
  bytes: number,
): Promise<number | undefined> {
  const magic = head.toString("latin1", 0, 4);
  if (magic === "RIFF") return wavSeconds(head, bytes);
  if (magic === "fLaC") return flacSeconds(head);
  if (magic === "OggS") {
    const start = Math.max(0, bytes - windowBytes);
    return opusSeconds(Buffer.concat([head, await readAt(start, windowBytes)]));
  }
  if (head.toString("latin1", 4, 8) === "ftyp") return movieSeconds(readAt, bytes);
  const first = afterTag(head);
  const isAac = head[first] === 0xff && ((head[first + 1] ?? 0) & 0xf6) === 0xf0;
  const walk = isAac ? walkAac : walkMp3;
  let seconds = 0;
  for (let at = first; at < bytes; ) {
    const part = walk(await readAt(at, windowBytes));
    if (part.end === 0) break;
    seconds += part.seconds;
    at += part.end;
  }
  return seconds;
}

/** The frames of a part of a file, from its first byte. */
interface WalkedFrames {
  readonly seconds: number;
  /** Behind the last of them, which may be longer than the part; 0: there is none. */
  readonly end: number;
}

/** Measurable audio formats. `pcm` is 16 bits, mono, 24,000 samples a second. */
export type AudioFormat = "mp3" | "opus" | "aac" | "flac" | "wav" | "pcm";

/** The length of an audio file in seconds; `undefined` where it cannot be determined. */
export function audioSeconds(file: Buffer, format: AudioFormat): number | undefined {
  const seconds = measures[format](file);
  return seconds !== undefined && Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined;
}

const measures: Readonly<Record<AudioFormat, (file: Buffer) => number | undefined>> = {
  mp3: mp3Seconds,
  opus: opusSeconds,
  aac: aacSeconds,
  flac: flacSeconds,
  wav: wavSeconds,
  pcm: (file) => file.length / 2 / 24_000,
};

/**
 * Counts the samples after the `fmt ` chunk. The size in `data` counts only where the file is that long; streams
 * leave it open.
 */
function wavSeconds(file: Buffer, bytes = file.length): number | undefined {
  if (file.toString("latin1", 0, 4) !== "RIFF" || file.toString("latin1", 8, 12) !== "WAVE") {
    return undefined;
  }
  let bytesPerSecond = 0;
  for (let at = 12; at + 8 <= file.length; ) {
    const type = file.toString("latin1", at, at + 4);
    const length = file.readUInt32LE(at + 4);
    const start = at + 8;
    if (type === "fmt " && start + 12 <= file.length) bytesPerSecond = file.readUInt32LE(start + 8);
    if (type === "data") return Math.min(length, bytes - start) / bytesPerSecond;
    at = start + length + (length % 2);
  }
  return undefined;
}

/** The sample count in the stream information; 0 means unknown. */
function flacSeconds(file: Buffer): number | undefined {
  if (file.toString("latin1", 0, 4) !== "fLaC" || file.length < 26) return undefined;
  const rate = file.readUIntBE(18, 3) >> 4;
  const samples = (file.readUInt8(21) & 0x0f) * 2 ** 32 + file.readUInt32BE(22);
  return samples === 0 ? undefined : samples / rate;
}

/** The position of the last Ogg page, at 48,000 samples a second in any encoding, minus the skipped samples. */
function opusSeconds(file: Buffer): number | undefined {
  const last = file.lastIndexOf("OggS");
  const head = file.indexOf("OpusHead");
  if (last < 0 || head < 0 || last + 14 > file.length || head + 12 > file.length) return undefined;
  const samples = file.readUInt32LE(last + 6) + file.readUInt32LE(last + 10) * 2 ** 32;
  return Math.max(0, samples - file.readUInt16LE(head + 10)) / 48_000;
}

const aacRates = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
  7_350,
];

/** 1,024 samples per block of each ADTS frame. */
function aacSeconds(file: Buffer): number | undefined {
  return walkAac(file).seconds || undefined;
}

function walkAac(file: Buffer): WalkedFrames {
  let seconds = 0;
  let at = 0;
  while (at + 7 <= file.length) {
    const isFrame = file[at] === 0xff && ((file[at + 1] ?? 0) & 0xf6) === 0xf0;
    const rate = aacRates[((file[at + 2] ?? 0) >> 2) & 0x0f];
    const length = (file.readUInt32BE(at + 3) >>> 13) & 0x1fff;
    if (!isFrame || rate === undefined || length < 7) break;
    seconds += (1_024 * (((file[at + 6] ?? 0) & 0x03) + 1)) / rate;
    at += length;
  }
  return { seconds, end: at };
}

/**
 * Adds up layer III frames after an ID3v2 tag. Each frame states its own rates, so files with varying rates are
 * measured correctly.
 */
function mp3Seconds(file: Buffer): number | undefined {
  return walkMp3(file.subarray(afterTag(file))).seconds || undefined;
}

function walkMp3(file: Buffer): WalkedFrames {
  let seconds = 0;
  let at = 0;
  while (at + 4 <= file.length) {
    const frame = mp3Frame(file.readUInt32BE(at));
    if (frame === undefined) break;
    seconds += frame.seconds;
    at += frame.bytes;
  }
  return { seconds, end: at };
}

function afterTag(file: Buffer): number {
  if (file.length < 10 || file.toString("latin1", 0, 3) !== "ID3") return 0;
  return 10 + tagBytes(file.readUInt32BE(6));
}
