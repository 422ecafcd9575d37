/**
 * Measures MP4 and QuickTime files. The movie header states a length; but players play the samples
 * of the tracks, and a sample of audio lasts as long as its codec says, whatever the tables of
 * times say.
 */
import { bytesPerSecondMin, type Measurement, readPadded } from "./source.ts";

/** Boxes of one level. An hour in fragments of a second has 7,200. */
const boxesMax = 65_536;

/** Longest box of tables that is read: an hour of video has about 1 MB. */
const tablesBytesMax = 32 * 1_024 * 1_024;

/** The length of a movie, in seconds. */
export interface MovieLength {
  /** From the movie header or the header of fragments; undefined if neither states it. */
  readonly stated: number | undefined;
  /** The longest track, by its samples; `undefined` if no track has any. */
  readonly tracks: number | undefined;
  /** The longest audio track, by its codec; `undefined` if there is none. */
  readonly audio: number | undefined;
  /**
   * Whether all boxes of the file were read; if not, there may be more fragments behind a malformed
   * one.
   */
  readonly isWhole: boolean;
}

/** Reads the lengths of a movie; `undefined` if there is none in the file. */
export function* movieLength(bytes: number): Measurement<MovieLength | undefined> {
  const found = yield* findTables(bytes);
  if (found === undefined) return undefined;
  const { movie, fragments, isWhole } = found;
  const samples = fragmentSamples(fragments, trackDefaults(movie));
  const tracks = childrenOf(movie)
    .filter(({ type }) => type === "trak")
    .map(({ content }) => readTrack(content, samples));
  return {
    stated: statedSeconds(movie),
    tracks: longestOf(tracks.map(({ seconds }) => seconds)),
    audio: longestOf(tracks.map(({ audioSeconds }) => audioSeconds)),
    isWhole,
  };
}

function longestOf(seconds: readonly number[]): number | undefined {
  const longest = Math.max(0, ...seconds);
  return longest === 0 ? undefined : longest;
}

/** A box in memory. */
interface Box {
  readonly type: string;
  readonly content: Buffer;
}

/** Reads the movie box and the fragments of a file. */
function* findTables(
  bytes: number,
): Measurement<{ movie: Buffer; fragments: Buffer[]; isWhole: boolean } | undefined> {
  let movie: Buffer | undefined;
  let isWhole = true;
  let tableBytes = 0;
  const fragments: Buffer[] = [];
  for (let [at, count] = [0, 0]; count < boxesMax && at + 8 <= bytes; count++) {
    const head = yield* readPadded(at, 16);
    const box = boxAt(head, bytes - at);
    if (box === undefined) {
      // A recording that was cut off ends within its data.
      isWhole = head.toString("latin1", 4, 8) === "mdat";
      break;
    }
    if ((box.type === "moov" && movie === undefined) || box.type === "moof") {
      tableBytes += box.end - box.start;
      if (tableBytes > tablesBytesMax) return undefined;
      const content = yield* readPadded(at + box.start, box.end - box.start);
      if (box.type === "moov") movie = content;
      else fragments.push(content);
    }
    at += box.end;
  }
  return movie && { movie, fragments, isWhole };
}

/** Reads the head of a box. @param left the bytes from its start to the end of what contains it */
function boxAt(
  head: Buffer,
  left: number,
): { readonly type: string; readonly start: number; readonly end: number } | undefined {
  const short = head.readUInt32BE(0);
  const start = short === 1 ? 16 : 8;
  // Size 0 means the rest of the file; 1 means a 64-bit size after the type.
  const end = short === 0 ? left : short === 1 ? Number(head.readBigUInt64BE(8)) : short;
  if (end < start || end > left) return undefined;
  return { type: head.toString("latin1", 4, 8), start, end };
}

/** The boxes of one level, until one that is malformed. */
function childrenOf(content: Buffer): Box[] {
  const boxes: Box[] = [];
  for (let at = 0; at + 8 <= content.length && boxes.length < boxesMax; ) {
    const head = content.subarray(at, at + 16);
    const padded = head.length === 16 ? head : Buffer.concat([head], 16);
    const box = boxAt(padded, content.length - at);
    if (box === undefined) break;
    boxes.push({ type: box.type, content: content.subarray(at + box.start, at + box.end) });
    at += box.end;
  }
  return boxes;
}

/** Finds a box by the names on its way. */
function find(content: Buffer, ...path: readonly string[]): Buffer | undefined {
  let found: Buffer | undefined = content;
  for (const name of path) {
    found = found && childrenOf(found).find(({ type }) => type === name)?.content;
  }
  return found;
}

/** Reads a number of 4 bytes; 0 beyond the end. */
function word(content: Buffer | undefined, at: number): number {
  return content !== undefined && at + 4 <= content.length ? content.readUInt32BE(at) : 0;
}

/**
 * The length in the movie header, in units that it defines. Fragmented files have 0 there, and the
 * length next to their fragments.
 */
function statedSeconds(movie: Buffer): number | undefined {
  const head = find(movie, "mvhd");
  if (head === undefined) return undefined;
  const isLong = head[0] === 1;
  const scale = word(head, isLong ? 20 : 12);
  const units = known(isLong ? long(head, 24) : word(head, 16)) ?? fragmentsUnits(movie);
  return scale === 0 || units === undefined ? undefined : units / scale;
}

function fragmentsUnits(movie: Buffer): number | undefined {
  const head = find(movie, "mvex", "mehd");
  return head && known(head[0] === 1 ? long(head, 4) : word(head, 4));
}

function long(content: Buffer, at: number): number {
  return word(content, at) * 2 ** 32 + word(content, at + 4);
}

/** All ones mean an unknown length. */
function known(units: number): number | undefined {
  return units > 0 && units < 0xffff_ffff ? units : undefined;
}

/** Samples of a track. */
interface Samples {
  readonly count: number;
  /** Their time, in units of the track. */
  readonly units: number;
  readonly bytes: number;
}

const noSamples: Samples = { count: 0, units: 0, bytes: 0 };

/** Defaults of the samples of a track. */
interface SampleDefaults {
  readonly duration: number;
  readonly bytes: number;
}

function trackDefaults(movie: Buffer): ReadonlyMap<number, SampleDefaults> {
  const defaults = childrenOf(find(movie, "mvex") ?? Buffer.alloc(0));
  return new Map(
    defaults
      .filter(({ type }) => type === "trex")
      .map(({ content }) => [
        word(content, 4),
        { duration: word(content, 12), bytes: word(content, 16) },
      ]),
  );
}

/** The samples of all fragments, by track. */
function fragmentSamples(
  fragments: readonly Buffer[],
  defaults: ReadonlyMap<number, SampleDefaults>,
): ReadonlyMap<number, Samples> {
  const samples = new Map<number, Samples>();
  const parts = fragments.flatMap(childrenOf).filter(({ type }) => type === "traf");
  for (const { content } of parts) {
    const head = find(content, "tfhd");
    const flags = word(head, 0);
    const track = word(head, 4);
    const usual = defaults.get(track);
    // The fields that the flags name follow each other: an offset, an index, the duration, the
    // size.
    const durationAt = 8 + (flags & 1 ? 8 : 0) + (flags & 2 ? 4 : 0);
    const own: SampleDefaults = {
      duration: flags & 8 ? word(head, durationAt) : (usual?.duration ?? 0),
      bytes: flags & 16 ? word(head, durationAt + (flags & 8 ? 4 : 0)) : (usual?.bytes ?? 0),
    };
    for (const run of childrenOf(content).filter(({ type }) => type === "trun")) {
      samples.set(track, sum(samples.get(track) ?? noSamples, runSamples(run.content, own)));
    }
  }
  return samples;
}

function sum(one: Samples, other: Samples): Samples {
  return {
    count: one.count + other.count,
    units: one.units + other.units,
    bytes: one.bytes + other.bytes,
  };
}

/** The samples of one run of a fragment (ISO/IEC 14496-12, 8.8.8). */
function runSamples(run: Buffer, usual: SampleDefaults): Samples {
  const flags = word(run, 0);
  const hasDuration = (flags & 0x100) !== 0;
  const hasBytes = (flags & 0x200) !== 0;
  const fieldBytes = 4 * [0x100, 0x200, 0x400, 0x800].filter((flag) => flags & flag).length;
  const start = 8 + (flags & 1 ? 4 : 0) + (flags & 4 ? 4 : 0);
  const listed = Math.floor(Math.max(0, run.length - start) / Math.max(1, fieldBytes));
  const count = fieldBytes === 0 ? word(run, 4) : Math.min(word(run, 4), listed);
  let units = hasDuration ? 0 : count * usual.duration;
  let bytes = hasBytes ? 0 : count * usual.bytes;
  const read = hasDuration || hasBytes ? count : 0;
  for (let i = 0; i < read; i++) {
    const at = start + i * fieldBytes;
    if (hasDuration) units += word(run, at);
    if (hasBytes) bytes += word(run, at + (hasDuration ? 4 : 0));
  }
  return { count, units, bytes };
}

/** The length of a track, in seconds. */
interface TrackLength {
  readonly seconds: number;
  /**
   * The same, but by its bytes if the codec is not known: then the tables alone state the length.
   * 0: no audio.
   */
  readonly audioSeconds: number;
}

function readTrack(track: Buffer, fragments: ReadonlyMap<number, Samples>): TrackLength {
  const head = find(track, "tkhd");
  const id = word(head, head?.[0] === 1 ? 20 : 12);
  const media = find(track, "mdia") ?? Buffer.alloc(0);
  const mediaHead = find(media, "mdhd");
  const scale = word(mediaHead, mediaHead?.[0] === 1 ? 20 : 12);
  const isAudio = find(media, "hdlr")?.toString("latin1", 8, 12) === "soun";
  const tables = find(media, "minf", "stbl") ?? Buffer.alloc(0);
  const times = timesOf(find(tables, "stts") ?? Buffer.alloc(0));
  const sizes = sizesOf(tables);
  const listed = { ...sizes, units: times.units, count: Math.max(times.count, sizes.count) };
  const samples = sum(listed, fragments.get(id) ?? noSamples);
  const stated = scale === 0 ? 0 : samples.units / scale;
  if (!isAudio) {
    return { seconds: Math.max(stated, samples.count / picturesPerSecondMax), audioSeconds: 0 };
  }
  const sampleSeconds = audioSampleSeconds(find(tables, "stsd"));
  if (sampleSeconds === undefined) {
    return {
      seconds: stated,
      audioSeconds: Math.max(stated, samples.bytes / bytesPerSecondMin),
    };
  }
  const seconds = samples.count * sampleSeconds;
  return { seconds, audioSeconds: seconds };
}

/** The most pictures a second that a level of H.264 allows. */
const picturesPerSecondMax = 300;

/** The table of times: runs of samples of equal length. */
function timesOf(table: Buffer): Pick<Samples, "count" | "units"> {
  const runs = Math.min(word(table, 4), Math.floor(Math.max(0, table.length - 8) / 8));
  let count = 0;
  let units = 0;
  for (let i = 0; i < runs; i++) {
    const samples = word(table, 8 + i * 8);
    const duration = word(table, 12 + i * 8);
    count += samples;
    units += samples * duration;
  }
  return { count, units };
}

/**
 * The table of sizes: one for all samples, or one for each; the compact table has 4, 8 or 16 bits
 * for each.
 */
function sizesOf(tables: Buffer): Pick<Samples, "count" | "bytes"> {
  const table = find(tables, "stsz");
  const compact = table === undefined ? find(tables, "stz2") : undefined;
  const content = table ?? compact ?? Buffer.alloc(0);
  const count = word(content, 8);
  const size = compact === undefined ? word(content, 4) : 0;
  if (size > 0) return { count, bytes: count * size };
  const bits = compact === undefined ? 32 : (compact[7] ?? 0);
  const listed = Math.min(count, Math.floor(((content.length - 12) * 8) / Math.max(4, bits)));
  let bytes = 0;
  for (let i = 0; i < listed; i++) {
    if (bits === 32) bytes += word(content, 12 + i * 4);
    else if (bits === 16) bytes += content.readUInt16BE(12 + i * 2);
    else if (bits === 8) bytes += content[12 + i] ?? 0;
    else bytes += ((content[12 + (i >> 1)] ?? 0) >> (i % 2 === 0 ? 4 : 0)) & 15;
  }
  return { count, bytes };
}

/**
 * Formats of QuickTime and ISO whose samples are not compressed: each has one value of each
 * channel.
 */
const plainFormats: ReadonlySet<string> = new Set([
  ...["raw ", "twos", "sowt", "in24", "in32", "fl32", "fl64", "lpcm", "ipcm", "fpcm"],
  ...["ulaw", "alaw"],
]);

/**
 * The length of a sample in seconds, by the codec; `undefined` for codecs whose samples differ or
 * are not known.
 */
function audioSampleSeconds(descriptions: Buffer | undefined): number | undefined {
  const [entry] = childrenOf(descriptions?.subarray(8) ?? Buffer.alloc(0));
  if (entry === undefined) return undefined;
  const { type, content } = entry;
  // A fixed-point number: the whole samples a second.
  const entryRate = content.length >= 28 ? content.readUInt16BE(24) : 0;
  const frame =
    type === "mp4a" ? mp4aFrame(content, entryRate) : plainFrame(type, content, entryRate);
  return frame === undefined || frame.rate === 0 ? undefined : frame.samples / frame.rate;
}

/** The samples of one channel in a frame, and samples a second. */
interface AudioFrame {
  readonly samples: number;
  readonly rate: number;
}

function plainFrame(type: string, content: Buffer, rate: number): AudioFrame | undefined {
  if (plainFormats.has(type)) return { samples: 1, rate };
  if (type === ".mp3") return mp3Frame(rate);
  if (type === "ac-3") return { samples: 1_536, rate };
  if (type !== "alac") return undefined;
  const cookie = content.lastIndexOf("alac");
  return { samples: word(content, cookie + 8), rate: word(content, cookie + 28) };
}

/** MPEG 1 has 48,000, 44,100 and 32,000 samples a second, the later versions less. */
function mp3Frame(rate: number): AudioFrame {
  return { samples: rate < 32_000 ? 576 : 1_152, rate };
}

/** AAC, or MP3 in the same kind of description (ISO/IEC 14496-1, 7.2.6.5). */
function mp4aFrame(content: Buffer, entryRate: number): AudioFrame | undefined {
  const at = content.indexOf("esds");
  const decoder = at < 0 ? undefined : descriptor(content.subarray(at + 8), 4);
  if (decoder === undefined) return undefined;
  const objectType = decoder[0] ?? 0;
  if (objectType === 0x69 || objectType === 0x6b) return mp3Frame(entryRate);
  const isAac = objectType === 0x40 || (objectType >= 0x66 && objectType <= 0x68);
  const config = isAac ? descriptor(decoder.subarray(13), 5) : undefined;
  return config && aacFrame(config, entryRate);
}

/** Finds a descriptor by its tag, inside the stream's descriptor or on the same level. */
function descriptor(content: Buffer, tag: number): Buffer | undefined {
  for (let at = 0; at + 2 <= content.length; ) {
    const found = content[at];
    let length = 0;
    let next = at + 1;
    for (let more = true; more && next < Math.min(at + 5, content.length); next++) {
      length = length * 128 + ((content[next] ?? 0) & 0x7f);
      more = (content[next] ?? 0) >= 0x80;
    }
    if (found === tag) return content.subarray(next, next + length);
    // The stream's own descriptor contains the decoder's, behind an id and flags.
    at = found === 3 ? next + 3 : next + length;
  }
  return undefined;
}

const aacRates = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
  7_350,
];

/**
 * Reads an AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1).
 *
 * @param entryRate the rate that the container states; 0 if it states none
 */
export function aacFrame(config: Buffer, entryRate: number): AudioFrame | undefined {
  const bits = [...config.subarray(0, 8)].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const read = (at: number, count: number): number =>
    Number.parseInt(bits.slice(at, at + count), 2);
  const isEscaped = read(0, 5) === 31;
  const objectType = isEscaped ? 32 + read(5, 6) : read(0, 5);
  const at = isEscaped ? 11 : 5;
  const index = read(at, 4);
  const configRate = index === 15 ? read(at + 4, 24) : (aacRates[index] ?? 0);
  // Types 23 and 39 have short delays, 42 has frames of several lengths.
  if (objectType === 42 || Number.isNaN(configRate)) return undefined;
  const samples = objectType === 23 || objectType === 39 ? 512 : 1_024;
  // With replicated bands, a description may state the rate of the output, twice that of the
  // frames.
  const rates = [configRate, entryRate].filter((rate) => rate > 0);
  return { samples, rate: Math.min(...rates) };
}
