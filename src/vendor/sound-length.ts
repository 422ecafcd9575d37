/** How long sound is, told by its file: what a task costs that is charged by the second. */

/** Files of sound that can be measured. `pcm` is 16 bits, one channel, 24,000 samples a second. */
export type SoundFormat = "mp3" | "opus" | "aac" | "flac" | "wav" | "pcm";

/** Seconds of sound; `undefined`: the file does not tell. */
export function soundSeconds(file: Buffer, format: SoundFormat): number | undefined {
  const seconds = measures[format](file);
  return seconds !== undefined && Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined;
}

const measures: Readonly<Record<SoundFormat, (file: Buffer) => number | undefined>> = {
  mp3: mp3Seconds,
  opus: opusSeconds,
  aac: aacSeconds,
  flac: flacSeconds,
  wav: wavSeconds,
  pcm: (file) => file.length / 2 / 24_000,
};

/** The samples after the `fmt ` chunk; the length of `data` counts only where the file has it: streams do not. */
function wavSeconds(file: Buffer): number | undefined {
  if (file.toString("latin1", 0, 4) !== "RIFF" || file.toString("latin1", 8, 12) !== "WAVE") {
    return undefined;
  }
  let bytesPerSecond = 0;
  for (let at = 12; at + 8 <= file.length; ) {
    const type = file.toString("latin1", at, at + 4);
    const length = file.readUInt32LE(at + 4);
    const start = at + 8;
    if (type === "fmt " && start + 12 <= file.length) bytesPerSecond = file.readUInt32LE(start + 8);
    if (type === "data") return Math.min(length, file.length - start) / bytesPerSecond;
    at = start + length + (length % 2);
  }
  return undefined;
}

/** The samples of the stream information; 0 there means that they were not known. */
function flacSeconds(file: Buffer): number | undefined {
  if (file.toString("latin1", 0, 4) !== "fLaC" || file.length < 26) return undefined;
  const rate = file.readUIntBE(18, 3) >> 4;
  const samples = (file.readUInt8(21) & 0x0f) * 2 ** 32 + file.readUInt32BE(22);
  return samples === 0 ? undefined : samples / rate;
}

/** The position of the last page of Ogg, at 48,000 samples a second whatever was encoded, less what is skipped. */
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

/** 1,024 samples for each block of each ADTS frame. */
function aacSeconds(file: Buffer): number | undefined {
  let seconds = 0;
  for (let at = 0; at + 7 <= file.length; ) {
    const isFrame = file[at] === 0xff && ((file[at + 1] ?? 0) & 0xf6) === 0xf0;
    const rate = aacRates[((file[at + 2] ?? 0) >> 2) & 0x0f];
    const length = (file.readUInt32BE(at + 3) >>> 13) & 0x1fff;
    if (!isFrame || rate === undefined || length < 7) break;
    seconds += (1_024 * (((file[at + 6] ?? 0) & 0x03) + 1)) / rate;
    at += length;
  }
  return seconds === 0 ? undefined : seconds;
}

const bitRates = {
  1: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  2: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
} as const;
const sampleRates = [44_100, 48_000, 32_000];

/** The frames of layer III, after a tag of ID3v2. A frame names its own rates, so files of changing ones count
 * right. */
function mp3Seconds(file: Buffer): number | undefined {
  let seconds = 0;
  for (let at = afterTag(file); at + 4 <= file.length; ) {
    const frame = mp3Frame(file.readUInt32BE(at));
    if (frame === undefined) break;
    seconds += frame.seconds;
    at += frame.bytes;
  }
  return seconds === 0 ? undefined : seconds;
}

function afterTag(file: Buffer): number {
  if (file.length < 10 || file.toString("latin1", 0, 3) !== "ID3") return 0;
  // Its length is in bytes of seven bits.
  const bytes = [...file.subarray(6, 10)];
  return 10 + bytes.reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0);
}

/** Reads a frame's head; `undefined`: it is none. */
function mp3Frame(head: number): { readonly bytes: number; readonly seconds: number } | undefined {
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
  const padding = (head >>> 9) & 1;
  const bytes = Math.floor((samples / 8) * ((kilobits * 1_000) / rate)) + padding;
  return { bytes, seconds: samples / rate };
}
