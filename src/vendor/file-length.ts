/** How long a film or a sound is, told by its file: what it is charged by where its vendor does not say. */
import { type FileHandle, open, readFile } from "node:fs/promises";
import { type SoundFormat, soundSeconds } from "./sound-length.ts";

/** A file on disk. */
export interface MadeFile {
  readonly path: string;
  readonly contentType: string;
  readonly bytes: number;
}

/** Seconds; `undefined`: the file does not tell. Trusts nothing in it. @throws where it cannot be read */
export async function fileSeconds(file: MadeFile): Promise<number | undefined> {
  const { path, contentType, bytes } = file;
  if (boxTypes.has(contentType)) return movieSeconds(path, bytes);
  const format = soundFormats.get(contentType);
  if (format === undefined || bytes > soundBytesMax) return undefined;
  return soundSeconds(await readFile(path), format);
}

/** Of these the length stands in a box of the file. */
const boxTypes: ReadonlySet<string> = new Set(["video/mp4", "video/quicktime", "audio/mp4"]);

const soundFormats: ReadonlyMap<string, SoundFormat> = new Map([
  ["audio/wav", "wav"],
  ["audio/mpeg", "mp3"],
  ["audio/flac", "flac"],
  ["audio/ogg", "opus"],
  ["audio/aac", "aac"],
]);

/** Longer ones are not read: an hour of sound is less. */
const soundBytesMax = 64 * 1_024 * 1_024;

/** A file of more boxes side by side is none that a vendor makes. */
const boxesMax = 4_096;

/** A box, from its content to its end. */
interface Box {
  readonly start: number;
  readonly end: number;
}

/** The head of the movie: how long it is, in a unit of its own. A fragmented one says 0 there, and its length beside
 * its fragments. */
async function movieSeconds(path: string, bytes: number): Promise<number | undefined> {
  const handle = await open(path, "r");
  try {
    const movie = await findBox(handle, { start: 0, end: bytes }, "moov");
    const head = movie && (await findBox(handle, movie, "mvhd"));
    if (movie === undefined || head === undefined) return undefined;
    const fields = await read(handle, head.start, 32);
    const isLong = fields[0] === 1;
    const scale = fields.readUInt32BE(isLong ? 20 : 12);
    const said = isLong ? Number(fields.readBigUInt64BE(24)) : fields.readUInt32BE(16);
    const units = isKnown(said) ? said : await fragmentsUnits(handle, movie);
    return scale === 0 || units === undefined ? undefined : units / scale;
  } finally {
    await handle.close();
  }
}

async function fragmentsUnits(handle: FileHandle, movie: Box): Promise<number | undefined> {
  const rest = await findBox(handle, movie, "mvex");
  const head = rest && (await findBox(handle, rest, "mehd"));
  if (head === undefined) return undefined;
  const fields = await read(handle, head.start, 12);
  const said = fields[0] === 1 ? Number(fields.readBigUInt64BE(4)) : fields.readUInt32BE(4);
  return isKnown(said) ? said : undefined;
}

/** All ones stand for a length that is not known. */
function isKnown(units: number): boolean {
  return units > 0 && units < 0xffff_ffff;
}

/** The first box of a type among those side by side. */
async function findBox(handle: FileHandle, within: Box, type: string): Promise<Box | undefined> {
  let at = within.start;
  for (let count = 0; count < boxesMax && at + 8 <= within.end; count++) {
    const head = await read(handle, at, 16);
    const short = head.readUInt32BE(0);
    const start = at + (short === 1 ? 16 : 8);
    // 0 stands for the rest of the file, 1 for a length of 64 bits behind the type.
    const long = short === 1 ? Number(head.readBigUInt64BE(8)) : short;
    const end = short === 0 ? within.end : at + long;
    if (end < start || end > within.end) return undefined;
    if (head.toString("latin1", 4, 8) === type) return { start, end };
    at = end;
  }
  return undefined;
}

/** So many bytes; zeros stand for those behind the file's end. */
async function read(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  await handle.read(bytes, 0, length, position);
  return bytes;
}
