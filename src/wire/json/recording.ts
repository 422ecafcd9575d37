/**
 * The maximum duration of a recording in base64, by its bytes: vendors charge by duration, and a
 * small file can be hours of silence. Most formats set no bound: a few bytes of FLAC, Opus or MP4
 * can have any duration. Only plain WAV and MP3, the formats of chat completions, have one. Pure.
 */

/**
 * The frames of MP3 that nothing is known of: 72 ms, at 8,000 samples a second, have 13 bytes at
 * least.
 */
const mp3SecondsPerByte = 0.072 / 13;

/**
 * The maximum duration of a recording in seconds; undefined if it has no bound.
 *
 * @param base64 the recording. Any other character makes its duration unbounded, because vendors
 * skip different characters
 */
export function secondsBound(base64: Uint8Array): number | undefined {
  const file = base64File(base64);
  if (file === undefined) return undefined;
  const magic = file.read(0, 4);
  if (magic === wordOf("RIFF")) return wavBound(file);
  const isTagged = magic >>> 8 === wordOf("\0ID3");
  return isTagged || mp3Frame(magic) !== undefined ? mp3Bound(file) : undefined;
}

/** Bytes in base64, which are decoded when they are read. */
interface Base64File {
  readonly bytes: number;
  /**
   * Reads up to 4 bytes as one number, the first byte being the highest; bytes beyond the end are
   * 0.
   */
  read(at: number, length: number): number;
}

const invalid = 255;

const sextets = new Uint8Array(256).fill(invalid);
for (const [value, letter] of Array.from(
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
).entries()) {
  sextets[letter.charCodeAt(0)] = value;
}

const padding = 0x3d;

function base64File(base64: Uint8Array): Base64File | undefined {
  let end = base64.length;
  for (let pads = 0; pads < 2 && base64[end - 1] === padding; pads++) end--;
  for (let at = 0; at < end; at++) if (sextets[base64[at] as number] === invalid) return undefined;
  const bytes = Math.floor((end * 3) / 4);
  const sextetAt = (at: number): number => (at < end ? (sextets[base64[at] as number] ?? 0) : 0);
  const byteAt = (at: number): number => {
    const first = Math.floor(at / 3) * 4 + (at % 3);
    const shift = 2 * ((at % 3) + 1);
    return ((sextetAt(first) << shift) | (sextetAt(first + 1) >> (6 - shift))) & 0xff;
  };
  return {
    bytes,
    read(at, length) {
      let word = 0;
      for (let i = 0; i < length; i++) word = word * 256 + (at + i < bytes ? byteAt(at + i) : 0);
      return word;
    },
  };
}

function wordOf(letters: string): number {
  return Buffer.from(letters, "latin1").readUInt32BE();
}

/** Reads a number of up to 4 bytes, the first byte being the lowest. */
function readLittle(file: Base64File, at: number, length: number): number {
  let word = 0;
  for (let i = length; i-- > 0; ) word = word * 256 + file.read(at + i, 1);
  return word;
}

/** The shortest head of a WAV: its name, the format, and the name of the data. */
const wavHeadBytes = 44;

/**
 * All decoders read it alike only if the first chunk is the format, and all its fields are
 * consistent.
 */
function wavBound(file: Base64File): number | undefined {
  if (file.read(8, 4) !== wordOf("WAVE") || file.read(12, 4) !== wordOf("fmt ")) return undefined;
  const format = readLittle(file, 20, 2);
  const channels = readLittle(file, 22, 2);
  const rate = readLittle(file, 24, 4);
  const byteRate = readLittle(file, 28, 4);
  const frameBytes = readLittle(file, 32, 2);
  const sampleBits = readLittle(file, 34, 2);
  // 1: whole numbers, 3: floating-point numbers; others are compressed.
  if (format !== 1 && format !== 3) return undefined;
  const isConsistent = frameBytes * 8 === channels * sampleBits && byteRate === frameBytes * rate;
  return isConsistent && byteRate > 0 ? (file.bytes - wavHeadBytes) / byteRate : undefined;
}

/**
 * Adds up the frames after a tag. All other bytes, the tag's too, count as the longest frames there
 * are.
 */
function mp3Bound(file: Base64File): number {
  const isTagged = file.read(0, 3) === wordOf("\0ID3");
  let at = isTagged ? 10 + tagBytes(file.read(6, 4)) : 0;
  let otherBytes = Math.min(at, file.bytes);
  let seconds = 0;
  while (at + 4 <= file.bytes) {
    const frame = mp3Frame(file.read(at, 4));
    if (frame === undefined) break;
    seconds += frame.seconds;
    at += frame.bytes;
  }
  otherBytes += Math.max(0, file.bytes - at);
  return seconds + otherBytes * mp3SecondsPerByte;
}

/** The length of an ID3v2 tag behind its head: 7 bits of each byte count. */
export function tagBytes(word: number): number {
  let bytes = 0;
  for (const shift of [24, 16, 8, 0]) bytes = bytes * 128 + ((word >>> shift) & 0x7f);
  return bytes;
}

const bitRates = {
  1: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  2: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
} as const;
const sampleRates = [44_100, 48_000, 32_000];

/** A frame of MP3 (layer III). */
export interface Mp3Frame {
  readonly bytes: number;
  readonly seconds: number;
}

/** Parses the head of a frame, 4 bytes; undefined if it is none. */
export function mp3Frame(head: number): Mp3Frame | undefined {
  const versionBits = (head >>> 19) & 3;
  const isLayer3 = head >>> 21 === 0x7ff && ((head >>> 17) & 3) === 1 && versionBits !== 1;
  const isVersion1 = versionBits === 3;
  const kilobits = bitRates[isVersion1 ? 1 : 2][(head >>> 12) & 0x0f];
  const baseRate = sampleRates[(head >>> 10) & 3];
  if (!isLayer3 || kilobits === undefined || kilobits === 0 || baseRate === undefined) {
    return undefined;
  }
  const rate = isVersion1 ? baseRate : versionBits === 2 ? baseRate / 2 : baseRate / 4;
  const samples = isVersion1 ? 1_152 : 576;
  const isPadded = (head >>> 9) & 1;
  const bytes = Math.floor((samples / 8) * ((kilobits * 1_000) / rate)) + isPadded;
  return { bytes, seconds: samples / rate };
}
