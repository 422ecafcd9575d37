/**
 * Finds the images, documents and audio of a request body in any style, during the scan of
 * outline.ts; text strings cost nothing extra.
 *
 * Media count only if vendors read them as media: in parts of messages. The same words in a tool's
 * arguments or schema, in `metadata` or in text are text. Otherwise a client could disguise a
 * million tokens as an image.
 */
import { asBuffer } from "../../core/bytes.ts";
import { placeOfName } from "./duplicate-member.ts";
import { secondsBound } from "./recording.ts";
import { equalsAscii, type JsonText, stringEnd, weightUpTo } from "./scan.ts";

// Names of members that lead to media, matched as bytes without creating strings.

/** Meanings of a name, as bits. */
const Role = {
  /** Contains message parts. */
  OPEN: 1,
  /** The object under it is one medium. */
  MEDIA: 2,
  /** Its string within a part is a medium. */
  MEDIA_STRING: 4,
  /** Its string within a media object is the content or a reference. */
  PAYLOAD: 8,
  /** As PAYLOAD, in undeclared base64. */
  BASE64: 16,
  /** Its string within a part is readable by the vendor only. */
  SEAL: 32,
  /** Its string is the type of a part. */
  TYPE: 64,
  /** Its string in a media object is a MIME type. */
  MIME: 128,
  /** Its string within an image-generation call is an image. */
  RESULT: 256,
} as const;

/** A name and its meaning. */
export interface NamedRole {
  readonly name: string;
  /** Bits of {@link Role}; 0 for none. */
  readonly role: number;
}

/** No name, or one without a meaning. */
export const noRole: NamedRole = { name: "", role: 0 };

const { OPEN, MEDIA, MEDIA_STRING, PAYLOAD, BASE64, SEAL, TYPE, MIME, RESULT } = Role;

const nestedRoles: Readonly<Record<string, number>> = {
  messages: OPEN,
  system: OPEN,
  content: OPEN,
  output: OPEN,
  contents: OPEN,
  parts: OPEN,
  systemInstruction: OPEN,
  image_url: MEDIA | MEDIA_STRING,
  source: MEDIA,
  file: MEDIA,
  // Some vendors accept the address itself; others require an object that contains it.
  input_audio: MEDIA | MEDIA_STRING,
  audio_url: MEDIA | MEDIA_STRING,
  video_url: MEDIA | MEDIA_STRING,
  document_url: MEDIA | MEDIA_STRING,
  inline_data: MEDIA,
  inlineData: MEDIA,
  file_data: MEDIA | MEDIA_STRING | PAYLOAD | BASE64,
  fileData: MEDIA,
  file_url: MEDIA | MEDIA_STRING,
  file_id: MEDIA_STRING | PAYLOAD,
  // Alibaba's parts: `{"image": "https://…"}`.
  image: MEDIA_STRING,
  audio: MEDIA_STRING,
  video: MEDIA_STRING,
  url: PAYLOAD,
  data: PAYLOAD | BASE64,
  file_uri: PAYLOAD,
  fileUri: PAYLOAD,
  encrypted_content: SEAL,
  signature: SEAL,
  thoughtSignature: SEAL,
  thought_signature: SEAL,
  type: TYPE,
  media_type: MIME,
  mimeType: MIME,
  mime_type: MIME,
  result: RESULT,
};

/** Common top-level names without a meaning here. */
const commonNames =
  "model stream stream_options max_tokens max_completion_tokens max_output_tokens temperature top_p n stop stop_sequences tools tool_choice parallel_tool_calls response_format instructions metadata user store reasoning reasoning_effort thinking";

/** A lookup table of names. */
class NameTable {
  /** By bit in a {@link KeySet}; most other names have a bit without an entry. */
  readonly #byPlace: readonly (readonly NamedRole[])[];
  readonly #byName: ReadonlyMap<string, NamedRole>;

  constructor(roles: Readonly<Record<string, number>>) {
    const names = Object.entries(roles).map(([name, role]) => ({ name, role }));
    this.#byName = new Map(names.map((each) => [each.name, each]));
    this.#byPlace = Array.from({ length: 256 }, (_, place) =>
      names.filter(({ name }) => placeOfName(name) === place),
    );
  }

  /**
   * The name from `start` to `end` (exclusive) with this bit; {@link noRole} if it is not in the
   * table.
   */
  find(place: number, bytes: Uint8Array, start: number, end: number): NamedRole {
    const named = this.#byPlace[place] as readonly NamedRole[];
    for (let i = 0; i < named.length; i++) {
      const each = named[i] as NamedRole;
      if (equalsAscii(bytes, start, end, each.name)) return each;
    }
    return noRole;
  }

  /** Looks up a decoded name. */
  named(name: string): NamedRole {
    return this.#byName.get(name) ?? noRole;
  }
}

/** Names below the top level. */
export const nestedNames = new NameTable(nestedRoles);

/** Names at the top level. `input` contains parts only there; elsewhere it belongs to a tool. */
export const topNames = new NameTable({
  ...Object.fromEntries(commonNames.split(" ").map((name) => [name, 0])),
  ...nestedRoles,
  input: OPEN,
});

/** An image, document or audio of a request. */
export interface Media {
  readonly kind: "image" | "document" | "audio" | "video" | "other" | "sealed";
  /** Length of its base64 in bytes; undefined if it is given by URL or id. */
  readonly bytes: number | undefined;
  /** Of audio in the request: its maximum duration in seconds; absent if it has no bound. */
  readonly secondsMax?: number | undefined;
  /** Whether a document is plain text, by its content type and its first bytes. Not by default. */
  readonly isText?: true;
}

/** A medium found in a body. */
export interface FoundMedia extends Media {
  /** Range of its string without quotes; `end` is exclusive. Empty if nothing can be omitted. */
  readonly start: number;
  readonly end: number;
  /** Weight of its string as text, in parts of a token. */
  readonly weight: number;
}

/** The content of an object or array. */
export const Place = {
  /** Neither parts nor media at any depth. */
  TEXT: 0,
  /** Parts of a conversation. */
  OPEN: 1,
  /** One image, document or audio. */
  MEDIA: 2,
} as const;

/** A value of {@link Place}. */
export type PlaceValue = (typeof Place)[keyof typeof Place];

/** An open object or array; reused for others of that depth. */
export interface Level {
  /** The closing byte. */
  closer: number;
  place: PlaceValue;
  /**
   * In {@link Place.OPEN}: range of the object's `type`, without quotes. Empty if it has none yet.
   */
  typeStart: number;
  typeEnd: number;
  /** In {@link Place.MEDIA}: the described medium. */
  described: Described | undefined;
  kind: string;
}

/** Range of a string without quotes, and its weight as text. */
interface Weighed {
  readonly start: number;
  readonly end: number;
  readonly weight: number;
}

/** The content of a media object. */
interface Described {
  payload: Weighed | undefined;
  isText: boolean;
  isNamed: boolean;
  mime: string;
}

/** Creates a reusable level. */
export function newLevel(closer: number, place: PlaceValue): Level {
  return { closer, place, typeStart: 0, typeEnd: 0, described: undefined, kind: "" };
}

/** Roles whose strings must be inspected; all others are text. */
const lookedAt = Role.MEDIA_STRING | Role.PAYLOAD | Role.SEAL | Role.TYPE | Role.MIME | Role.RESULT;

/** Whether a member's string must be passed to {@link MediaScan.string}. */
export function isMediaRelated({ role }: NamedRole): boolean {
  return (role & lookedAt) !== 0;
}

/** Greater than the depth of any message part. */
const depthMax = 32;

const closeBracket = 0x5d;
const comma = 0x2c;

/** Finds the media of one body. */
export class MediaScan {
  readonly #text: JsonText;
  readonly #bytes: Buffer;
  readonly #found: FoundMedia[] = [];

  constructor(text: JsonText) {
    this.#text = text;
    this.#bytes = asBuffer(text.bytes);
  }

  /** The found media, in order; nested ones before their container. */
  get found(): readonly FoundMedia[] {
    return this.#found.length < 2 ? this.#found : this.#found.sort((a, b) => a.start - b.start);
  }

  /**
   * Opens a level. @param member the member that leads to it @param depth number of enclosing
   * levels
   */
  enter(level: Level, outer: Level, member: NamedRole, depth: number): void {
    level.typeStart = level.typeEnd = 0;
    level.described = undefined;
    level.place = depth >= depthMax ? Place.TEXT : placeIn(outer, member.role);
    if (level.place !== Place.MEDIA) return;
    level.kind = outer.place === Place.MEDIA ? outer.kind : this.#typeOf(outer) || member.name;
    level.described = newDescribed(level.kind);
  }

  /** Closes a level. */
  leave({ described }: Level): void {
    if (described !== undefined && !described.isText) this.#add(described);
  }

  /**
   * Reads a string for which {@link isMediaRelated} holds; `from` is its first byte. @returns the
   * position after its closing quote
   */
  string(level: Level, { name, role }: NamedRole, from: number): number {
    const before = weightUpTo(this.#text, from);
    const behind = stringEnd(this.#text, from);
    const end = behind - 1;
    const string = { start: from, end, weight: weightUpTo(this.#text, end) - before };
    const bytes = end - from;
    if (level.described !== undefined) this.#describe(level.described, role, string);
    else if (role === Role.TYPE) {
      level.typeStart = from;
      level.typeEnd = end;
    } else if (role === Role.SEAL) this.#found.push({ kind: "sealed", bytes, ...string });
    else if (role === Role.RESULT) {
      const isImage = this.#typeOf(level) === "image_generation_call";
      if (isImage) this.#found.push({ kind: "image", bytes, ...string });
    } else if ((role & Role.MEDIA_STRING) !== 0) {
      const described = newDescribed(this.#typeOf(level) || name);
      this.#describe(described, role, string);
      this.#add(described);
    }
    return behind;
  }

  /** Reads a string of a media object. */
  #describe(described: Described, role: number, string: Weighed): void {
    const { start, end } = string;
    if (role === Role.MIME) described.mime = this.#head(start, end, 64);
    else if (role === Role.TYPE) described.isText = this.#head(start, end, 5) === "text";
    else if ((role & (Role.PAYLOAD | Role.MEDIA_STRING)) !== 0) {
      const mime = /^data:([^;,]*)/.exec(this.#head(start, end, 64))?.[1];
      if (mime !== undefined) described.mime = mime;
      described.isNamed = mime === undefined && (role & Role.BASE64) === 0;
      described.payload = string;
    }
  }

  #add({ payload, isNamed, mime }: Described): void {
    if (payload === undefined) return;
    const { start, end } = payload;
    const kind = kindOf(mime);
    if (isNamed) {
      this.#found.push({ kind, bytes: undefined, start: end, end, weight: 0 });
      return;
    }
    const found = { kind, bytes: end - start, ...payload };
    if (kind === "audio") {
      this.#found.push({ ...found, secondsMax: secondsBound(this.#base64(payload)) });
    } else if (/^text\//.test(mime) && isPlainText(this.#base64(payload))) {
      this.#found.push({ ...found, isText: true });
    } else this.#found.push(found);
  }

  /** The base64 of a payload, which may be a data URL. */
  #base64({ start, end }: Weighed): Buffer {
    const payload = this.#bytes.subarray(start, end);
    return payload.toString("latin1", 0, 5) === "data:"
      ? payload.subarray(payload.indexOf(comma) + 1)
      : payload;
  }

  /** The object's type so far; empty for none. */
  #typeOf({ typeStart, typeEnd }: Level): string {
    return this.#head(typeStart, typeEnd, 32);
  }

  #head(start: number, end: number, bytesMax: number): string {
    return this.#bytes.toString("latin1", start, Math.min(end, start + bytesMax));
  }
}

function newDescribed(mime: string): Described {
  return { payload: undefined, isText: false, isNamed: true, mime };
}

/** The place of a value under a member with this role; in an array, the place of the array. */
function placeIn(outer: Level, role: number): PlaceValue {
  if (outer.place === Place.TEXT || outer.closer === closeBracket) return outer.place;
  if ((role & Role.OPEN) !== 0) return Place.OPEN;
  return (role & Role.MEDIA) !== 0 && outer.place === Place.OPEN ? Place.MEDIA : Place.TEXT;
}

/** Number of bytes at the beginning of a file that vendors search for the mark of a PDF. */
const markBytesMax = 1_024;

/** The first bytes of archives, compressed texts and old office documents. */
const marks = ["PK", "\x1f\x8b", "\xd0\xcf\x11\xe0"];

/**
 * Whether a file that is called a text begins with no mark of a format that vendors recognise: a
 * PDF or an archive, as office documents are, can hold more text than it has bytes.
 */
function isPlainText(base64: Buffer): boolean {
  const start = base64.toString("latin1", 0, (markBytesMax * 4) / 3 + 8);
  const head = Buffer.from(start, "base64").toString("latin1");
  return !head.includes("%PDF") && !marks.some((mark) => head.startsWith(mark));
}

/**
 * Classified by content type, otherwise by the part's name: `image_url`, `input_file`, `document` …
 */
function kindOf(word: string): Media["kind"] {
  if (/image/.test(word)) return "image";
  if (/pdf|file|document|source|^text\//.test(word)) return "document";
  if (/audio/.test(word)) return "audio";
  if (/video/.test(word)) return "video";
  return "other";
}
