/** Measures WAV files. */
import { mp3Frames, partSeconds } from "./frames.ts";
import { type Measurement, readPadded } from "./source.ts";

/** No program writes files with more chunks. */
const chunksMax = 4_096;

/** The format of the samples. */
interface SampleFormat {
  /** 1: whole numbers; 3: floating-point numbers; others are compressed. */
  readonly tag: number;
  readonly channels: number;
  /** Samples a second. */
  readonly rate: number;
  readonly blockBytes: number;
  readonly bits: number;
}

/** A part of the file with samples. */
interface Data {
  readonly start: number;
  readonly end: number;
}

/**
 * The length by the bytes of the samples and the rate at which they are played. The bytes per
 * second in the header do not count: no decoder reads them.
 */
export function* wavSeconds(bytes: number): Measurement {
  const head = yield* readPadded(0, 12);
  const isWav = /^(?:RIFF|RF64)....WAVE/s.test(head.toString("latin1"));
  if (!isWav) return undefined;
  let format: SampleFormat | undefined;
  for (let [at, count] = [12, 0]; at + 8 <= bytes && count < chunksMax; count++) {
    const { type, start, length } = yield* readChunk(at);
    if (type === "fmt ") format ??= readFormat(yield* readPadded(start, 40), length);
    if (type === "data") {
      return format && (yield* samplesSeconds(format, yield* dataFrom(start, length, bytes)));
    }
    at = start + length + (length % 2);
  }
  return undefined;
}

function* readChunk(at: number): Measurement<{ type: string; start: number; length: number }> {
  const head = yield* readPadded(at, 8);
  return { type: head.toString("latin1", 0, 4), start: at + 8, length: head.readUInt32LE(4) };
}

/**
 * The samples. The size of the chunk counts only if nothing but further chunks follows: streams
 * leave it open, and a size that is too small would leave most of the file out.
 */
function* dataFrom(start: number, length: number, bytes: number): Measurement<Data> {
  const whole = { start, end: bytes };
  if (length === 0 || start + length >= bytes) return whole;
  let end = start + length;
  for (let [at, count] = [end + (length % 2), 0]; at < bytes; count++) {
    const { type, start: inner, length: next } = yield* readChunk(at);
    const isChunk = /^[\x20-\x7e]{4}$/.test(type) && inner + next <= bytes && count < chunksMax;
    if (!isChunk) return whole;
    // Players go on with the next chunk of samples.
    if (type === "data") end += next;
    at = inner + next + (next % 2);
  }
  return { start, end };
}

function readFormat(fields: Buffer, length: number): SampleFormat {
  const tag = fields.readUInt16LE(0);
  const isExtensible = tag === 0xfffe && length >= 26;
  return {
    tag: isExtensible ? fields.readUInt16LE(24) : tag,
    channels: fields.readUInt16LE(2),
    rate: fields.readUInt32LE(4),
    blockBytes: fields.readUInt16LE(12),
    bits: fields.readUInt16LE(14),
  };
}

function* samplesSeconds(format: SampleFormat, data: Data): Measurement {
  if (format.tag === 0x55) return yield* partSeconds(mp3Frames, data);
  const samples = samplesPerByte(format);
  return samples === undefined ? undefined : ((data.end - data.start) * samples) / format.rate;
}

/** Samples of one channel in a byte; `undefined` for formats that are not known. */
function samplesPerByte({ tag, channels, blockBytes, bits }: SampleFormat): number | undefined {
  const perBlock = (samples: number): number | undefined =>
    samples > 0 && blockBytes > 0 ? samples / blockBytes : undefined;
  switch (tag) {
    case 1:
    case 3: {
      // Decoders disagree in which of the two they believe.
      const sizes = [blockBytes, channels * Math.ceil(bits / 8)].filter((size) => size > 0);
      return sizes.length === 0 ? undefined : 1 / Math.min(...sizes);
    }
    case 6:
    case 7:
      return channels === 0 ? undefined : 1 / channels;
    // Both kinds of ADPCM: 4 bits a sample, behind a header for each channel that has samples too.
    case 2:
      return perBlock(((blockBytes - 7 * channels) * 2) / channels + 2);
    case 0x11:
      return perBlock(((blockBytes - 4 * channels) * 2) / channels + 1);
    case 0x31:
      return 320 / 65;
    default:
      return undefined;
  }
}
