/**
 * Measures the length of video and audio files, by what a player plays. It is held and charged
 * where the vendor does not state a length. Headers that state a length, a bit rate or a number of
 * samples are not trusted.
 */
import { open, readFile, type FileHandle } from "node:fs/promises";
import { aacFrames, flacSeconds, framesSeconds, leadingTagEnd, mp3Frames } from "./frames.ts";
import { type MovieLength, movieLength } from "./movie.ts";
import { matroskaSeconds } from "./matroska.ts";
import { opusLength } from "./ogg.ts";
import {
  bytesPerSecondMin,
  measureBytes,
  measureFile,
  type Measurement,
  type ReadAt,
  readPadded,
} from "./source.ts";
import { wavSeconds } from "./wav.ts";

/** A file on disk. */
interface LocalFile {
  readonly path: string;
  readonly contentType: string;
  readonly bytes: number;
}

/**
 * The length of a vendor's file in seconds; `undefined` if the file does not contain it. @throws if
 * the file cannot be read
 */
export async function fileSeconds(file: LocalFile): Promise<number | undefined> {
  const { path, contentType, bytes } = file;
  if (boxTypes.has(contentType)) {
    const handle = await open(path, "r");
    try {
      return positive(await measureFile(movieSeconds(bytes), readerOf(handle)));
    } finally {
      await handle.close();
    }
  }
  const format = audioFormats.get(contentType);
  if (format === undefined || bytes > audioBytesMax) return undefined;
  return audioSeconds(await readFile(path), format);
}

/** Types whose length is in boxes of the file. */
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

function readerOf(handle: FileHandle): ReadAt {
  return async (position, length) => {
    const bytes = Buffer.alloc(length);
    const { bytesRead } = await handle.read(bytes, 0, length, position);
    return bytes.subarray(0, bytesRead);
  };
}

/**
 * The length of a customer's recording in seconds, by its content, whatever it is called;
 * `undefined` if its format is not known.
 */
export async function recordingSeconds(readAt: ReadAt, bytes: number): Promise<number | undefined> {
  return positive(await measureFile(recordingLength(bytes), readAt));
}

function* recordingLength(bytes: number): Measurement {
  const head = yield* readPadded(0, 12);
  const magic = head.toString("latin1", 0, 4);
  if (magic === "RIFF" || magic === "RF64") return yield* wav(bytes);
  if (magic === "OggS") return yield* opus(bytes);
  if (head.toString("latin1", 4, 8) === "ftyp") return yield* movieAudioSeconds(bytes);
  if (head.readUInt32BE(0) === 0x1a45_dfa3) return yield* matroska(bytes);
  const start = yield* leadingTagEnd(bytes);
  const flacHead = yield* readPadded(start, 4);
  if (flacHead.toString("latin1") === "fLaC") return yield* flac(bytes, start);
  // A file of one format has no frames of the other.
  return longest(yield* mp3(bytes), yield* aac(bytes));
}

/** Measurable audio formats. `pcm` is 16 bits, mono, 24,000 samples a second. */
export type AudioFormat = "mp3" | "opus" | "aac" | "flac" | "wav" | "pcm";

/** The length of an audio file in seconds; `undefined` if it cannot be determined. */
export function audioSeconds(file: Buffer, format: AudioFormat): number | undefined {
  if (format === "pcm") return file.length / 2 / 24_000;
  return positive(measureBytes(measures[format](file.length), file));
}

/**
 * The highest bit rate of each format, in bytes a second. A file is never shorter than its bytes at
 * this rate.
 *
 * - MP3: 320 kbit/s, the last row of the table of bit rates (ISO/IEC 11172-3, 2.4.2.3).
 * - AAC: 6,144 bits for a channel and 1,024 samples (ISO/IEC 14496-3, 4.5.3.1), at 96,000 samples a
 *   second: 576 kbit/s;
 *   eight channels, as many as a header of ADTS can name.
 * - FLAC: not compressed, at its highest rate of 655,350 samples a second, with 8 channels of 32
 *   bits (RFC 9639, 8.2).
 * - WAV: the same for 384,000 samples a second, the highest rate of converters. The format itself
 *   sets no limit.
 * - Opus: 1,275 bytes in each frame of 2.5 ms (RFC 6716, 3.4, R2).
 * - Video: 1 Gbit/s, of level 6.2 in the profile High (ITU-T H.264, table A-1: 800,000 units of
 *   1,250 bits).
 */
const bytesPerSecondMax = {
  mp3: 320_000 / 8,
  aac: (576_000 / 8) * 8,
  flac: 655_350 * 8 * 4,
  wav: 384_000 * 8 * 4,
  opus: 1_275 / 0.0025,
  movie: 1_000_000_000 / 8,
} as const;

const measures: Readonly<Record<Exclude<AudioFormat, "pcm">, (bytes: number) => Measurement>> = {
  mp3,
  opus,
  aac,
  flac,
  wav,
};

function* wav(bytes: number): Measurement {
  return atLeast(yield* wavSeconds(bytes), bytes / bytesPerSecondMax.wav);
}

function* flac(bytes: number, start = 0): Measurement {
  return atLeast(yield* flacSeconds(start, bytes), (bytes - start) / bytesPerSecondMax.flac);
}

function* mp3(bytes: number): Measurement {
  const mediaBytes = bytes - (yield* leadingTagEnd(bytes));
  return atLeast(yield* framesSeconds(mp3Frames, bytes), mediaBytes / bytesPerSecondMax.mp3);
}

function* aac(bytes: number): Measurement {
  const mediaBytes = bytes - (yield* leadingTagEnd(bytes));
  return atLeast(yield* framesSeconds(aacFrames, bytes), mediaBytes / bytesPerSecondMax.aac);
}

function* opus(bytes: number): Measurement {
  const length = yield* opusLength(bytes);
  if (length === undefined) return undefined;
  // Images before the audio do not count.
  return atLeast(length.seconds, (bytes - length.audioStart) / bytesPerSecondMax.opus);
}

function* matroska(bytes: number): Measurement {
  return atLeast(yield* matroskaSeconds(bytes), bytes / bytesPerSecondMax.movie);
}

/** A movie of a vendor: the stated length, if the tracks are not longer. */
function* movieSeconds(bytes: number): Measurement {
  const movie = yield* movieLength(bytes);
  if (movie === undefined) return undefined;
  return atLeast(statedOr(movie, movie.tracks), bytes / bytesPerSecondMax.movie);
}

/** A recording in a movie: its audio, which is what vendors read. */
function* movieAudioSeconds(bytes: number): Measurement {
  const movie = yield* movieLength(bytes);
  if (movie?.audio === undefined) return undefined;
  const least = movie.isWhole ? 0 : bytes / bytesPerSecondMin;
  return atLeast(statedOr(movie, movie.audio), least);
}

/**
 * The stated length, unless the tracks are longer. Encoders add a few frames, which the stated
 * length leaves out.
 */
function statedOr({ stated }: MovieLength, played: number | undefined): number | undefined {
  if (stated === undefined || played === undefined) return played ?? stated;
  return stated >= played - Math.min(0.25, played / 10) ? stated : played;
}

function atLeast(seconds: number | undefined, least: number): number | undefined {
  return seconds && Math.max(seconds, least);
}

function longest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

function positive(seconds: number | undefined): number | undefined {
  return seconds !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : undefined;
}
