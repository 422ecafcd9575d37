/**
 * Measures the audio of WebM and Matroska files, by the frames in their blocks. The duration in the
 * header and the timestamps count only for codecs that are not known.
 */
import { mp3Frames } from "./frames.ts";
import { aacFrame } from "./movie.ts";
import { opusSamples } from "./ogg.ts";
import { bytesPerSecondMin, FileWindow, type Measurement } from "./source.ts";

/** Elements by their id (RFC 9559, 5.1). */
const ids = {
  segment: 0x1853_8067,
  info: 0x1549_a966,
  timestampScale: 0x2a_d7b1,
  tracks: 0x1654_ae6b,
  track: 0xae,
  trackNumber: 0xd7,
  trackType: 0x83,
  codecId: 0x86,
  codecPrivate: 0x63a2,
  contentEncodings: 0x6d80,
  audio: 0xe1,
  samplingFrequency: 0xb5,
  cluster: 0x1f43_b675,
  clusterTimestamp: 0xe7,
  simpleBlock: 0xa3,
  blockGroup: 0xa0,
  block: 0xa1,
} as const;

/**
 * Elements that are read inside. Their size does not matter, which recorders of streams leave open.
 */
const containers: ReadonlySet<number> = new Set([
  ...[ids.segment, ids.info, ids.tracks, ids.track, ids.audio, ids.cluster, ids.blockGroup],
]);

/** Bytes of an element's id and size, at most. */
const headBytes = 12;

/** Bytes of a block that are read: its head, and the sizes and first bytes of its frames. */
const blockBytesRead = 64 * 1_024;

/** ID of clusters, as written in a file. */
const clusterMark = Buffer.from("1f43b675", "hex");

/** A track and its frames so far. */
interface Track {
  number: number;
  isAudio: boolean;
  codec: string;
  setup: Buffer;
  rate: number;
  /**
   * Whether the length of a frame is not known: the codec is not, or frames lack their first bytes.
   */
  isUnknown: boolean;
  frameSeconds: number;
  bytes: number;
  lastTicks: number;
}

/** State of reading a file. */
interface Reading {
  readonly tracks: Track[];
  /** Nanoseconds of a tick. */
  scale: number;
  clusterTicks: number;
}

/** The length of the longest audio track in seconds; `undefined` if there is none. */
export function* matroskaSeconds(bytes: number): Measurement {
  const file = new FileWindow();
  const reading: Reading = { tracks: [], scale: 1_000_000, clusterTicks: 0 };
  for (let at = 0; at + 2 <= bytes; ) {
    const element = readElement(yield* file.read(at, headBytes));
    const isContainer = element !== undefined && containers.has(element.id);
    if (element === undefined || (!isContainer && at + element.end > bytes)) {
      // Players search for the next cluster.
      const next = yield* findCluster(file, at + 1, bytes);
      if (next === undefined) break;
      at = next;
      continue;
    }
    const end = at + (isContainer ? element.start : element.end);
    // Junk may look like an element in which the next cluster begins.
    const hidden = yield* findCluster(file, at + 1, end + clusterMark.length - 1);
    if (hidden === undefined) {
      if (element.id === ids.track) reading.tracks.push(newTrack());
      else if (!isContainer && known.has(element.id)) {
        const length = Math.min(element.end - element.start, blockBytesRead);
        takeElement(reading, element, yield* file.read(at + element.start, length));
      }
    }
    at = hidden ?? end;
  }
  const seconds = reading.tracks
    .filter(({ isAudio }) => isAudio)
    .map((track) => secondsOf(track, reading.scale));
  const longest = Math.max(0, ...seconds);
  return longest === 0 ? undefined : longest;
}

const known: ReadonlySet<number> = new Set(Object.values(ids));

function newTrack(): Track {
  const counts = { frameSeconds: 0, bytes: 0, lastTicks: 0 };
  const setup = Buffer.alloc(0);
  return { number: 0, isAudio: false, codec: "", setup, rate: 0, isUnknown: false, ...counts };
}

function secondsOf(track: Track, scale: number): number {
  if (!track.isUnknown) return track.frameSeconds;
  return Math.max((track.lastTicks * scale) / 1e9, track.bytes / bytesPerSecondMin);
}

/** The head of an element: its id, and its content from its own start. */
interface Element {
  readonly id: number;
  readonly start: number;
  readonly end: number;
}

function readElement(head: Buffer): Element | undefined {
  const idBytes = Math.clz32((head[0] ?? 0) << 24) + 1;
  if (idBytes > 4) return undefined;
  const size = readSize(head, idBytes);
  if (size === undefined) return undefined;
  return { id: head.readUIntBE(0, idBytes), start: size.end, end: size.end + size.value };
}

/** Reads a number whose leading zeros count its bytes. */
function readSize(bytes: Buffer, at: number): { value: number; end: number } | undefined {
  const first = bytes[at] ?? 0;
  const length = Math.clz32(first << 24) + 1;
  if (first === 0 || at + length > bytes.length) return undefined;
  let value = first & ((1 << (8 - length)) - 1);
  for (const byte of bytes.subarray(at + 1, at + length)) value = value * 256 + byte;
  return { value, end: at + length };
}

/** Finds the first cluster between two positions. */
function* findCluster(file: FileWindow, start: number, end: number): Measurement {
  for (let at = start; at + clusterMark.length <= end; ) {
    const part = (yield* file.rest(at, clusterMark.length)).subarray(0, end - at);
    if (part.length < clusterMark.length) return undefined;
    const found = part.indexOf(clusterMark);
    if (found >= 0) return at + found;
    at += part.length - clusterMark.length + 1;
  }
  return undefined;
}

function takeElement(reading: Reading, { id, start, end }: Element, content: Buffer): void {
  const track = reading.tracks.at(-1);
  if (id === ids.timestampScale) reading.scale = wholeOf(content);
  else if (id === ids.clusterTimestamp) reading.clusterTicks = wholeOf(content);
  else if (id === ids.simpleBlock || id === ids.block) takeBlock(reading, content, end - start);
  else if (track === undefined) return;
  else if (id === ids.trackNumber) track.number = wholeOf(content);
  else if (id === ids.trackType) track.isAudio = wholeOf(content) === 2;
  else if (id === ids.codecId) track.codec = content.toString("latin1").replace(/\0.*$/s, "");
  else if (id === ids.codecPrivate) track.setup = Buffer.from(content);
  else if (id === ids.contentEncodings) track.isUnknown = true;
  else if (id === ids.samplingFrequency) {
    track.rate =
      content.length === 8
        ? content.readDoubleBE()
        : content.length === 4
          ? content.readFloatBE()
          : 0;
  }
}

function wholeOf(content: Buffer): number {
  return content.subarray(0, 8).reduce((value, byte) => value * 256 + byte, 0);
}

/** Seconds of a frame; `undefined` if they are not known. */
function frameSeconds(frame: Buffer, { codec, setup, rate }: Track): number | undefined {
  if (codec === "A_OPUS") return opusSamples(frame) / 48_000;
  if (codec === "A_MPEG/L3") {
    const found = frame.length < 4 ? undefined : mp3Frames.read(frame, 0);
    return found && found.seconds * Math.ceil(frame.length / found.bytes);
  }
  if (!codec.startsWith("A_AAC")) return undefined;
  const found = aacFrame(setup, rate);
  return found === undefined || !Number.isFinite(found.rate)
    ? undefined
    : found.samples / found.rate;
}

/** @param bytes of the block, of which `content` may be the first part */
function takeBlock(reading: Reading, content: Buffer, bytes: number): void {
  const number = readSize(content, 0);
  if (number === undefined || content.length < number.end + 3) return;
  const track = reading.tracks.find((each) => each.number === number.value);
  if (track === undefined) return;
  const ticks = reading.clusterTicks + content.readInt16BE(number.end);
  track.lastTicks = Math.max(track.lastTicks, ticks);
  track.bytes += bytes;
  const lacing = ((content[number.end + 2] ?? 0) >> 1) & 3;
  for (const frame of framesOf(content.subarray(number.end + 3), lacing)) {
    const seconds = frameSeconds(frame, track);
    if (seconds === undefined) track.isUnknown = true;
    else track.frameSeconds += seconds;
  }
}

/** Splits a block into its frames (RFC 9559, 10.3). @param lacing 0: it is one frame */
function framesOf(content: Buffer, lacing: number): Buffer[] {
  if (lacing === 0) return [content];
  const count = (content[0] ?? 0) + 1;
  const { sizes, end } =
    lacing === 1
      ? xiphSizes(content, count - 1)
      : lacing === 3
        ? relativeSizes(content, count - 1)
        : equalSizes(content, count);
  let at = end;
  const frames = sizes.map((size) => content.subarray(at, (at += size)));
  return [...frames, content.subarray(at)];
}

interface FrameSizes {
  /** Of all frames but the last. */
  readonly sizes: readonly number[];
  /** Position of the first frame. */
  readonly end: number;
}

function equalSizes(content: Buffer, count: number): FrameSizes {
  const size = Math.floor((content.length - 1) / count);
  return { sizes: Array.from({ length: count - 1 }, () => size), end: 1 };
}

/** Each size is the sum of bytes up to the first that is below 255. */
function xiphSizes(content: Buffer, count: number): FrameSizes {
  const sizes: number[] = [];
  let at = 1;
  while (sizes.length < count && at < content.length) {
    let size = 0;
    while (content[at] === 255) size += content[at++] ?? 0;
    sizes.push(size + (content[at++] ?? 0));
  }
  return { sizes, end: at };
}

/** The first size is a number, the others are differences. */
function relativeSizes(content: Buffer, count: number): FrameSizes {
  const sizes: number[] = [];
  let at = 1;
  while (sizes.length < count) {
    const read = readSize(content, at);
    if (read === undefined) break;
    const last = sizes.at(-1);
    const bits = 7 * (read.end - at);
    sizes.push(
      Math.max(0, last === undefined ? read.value : last + read.value - (2 ** (bits - 1) - 1)),
    );
    at = read.end;
  }
  return { sizes, end: at };
}
