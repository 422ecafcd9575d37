/**
 * Finds the pictures, documents and recordings in a request body of any style, while outline.ts goes through it: a
 * string that is text costs nothing more.
 *
 * Only where vendors read them as such: in the parts of messages. The same words in a tool's arguments or
 * schema, in `metadata` or in a text are text, or a client could send a million tokens under the name of a
 * picture.
 */
import { asBuffer } from "../../core/bytes.ts";
import { type NamedRole, Role } from "./roles.ts";
import { type JsonText, stringEnd, weightUpTo } from "./string-scan.ts";

/** A picture, document or recording of a request. */
export interface Media {
  readonly kind: "picture" | "document" | "other" | "sealed";
  /** The length of its base64 in bytes; `undefined`: it is named by an address or an id. */
  readonly bytes: number | undefined;
}

/** One that was found. */
export interface FoundMedia extends Media {
  /** Where its string stands, without its quotes; `end` is exclusive. Equal: there is none to leave out. */
  readonly start: number;
  readonly end: number;
  /** What its string would weigh as text, in parts of a token. */
  readonly weight: number;
}

/** What stands in an object or an array. */
export const Place = {
  /** Neither parts nor media, nor anything inside. */
  TEXT: 0,
  /** Parts of a conversation. */
  OPEN: 1,
  /** One picture, document or recording. */
  MEDIA: 2,
} as const;

/** One of {@link Place}. */
export type PlaceValue = (typeof Place)[keyof typeof Place];

/** An object or an array while it is open. Used again for others of that depth. */
export interface Level {
  /** The byte that closes it. */
  closer: number;
  place: PlaceValue;
  /** Of an object in {@link Place.OPEN}: where its `type` stands, without quotes. Equal: it has none so far. */
  typeStart: number;
  typeEnd: number;
  /** In {@link Place.MEDIA}: what it says, and what it is by the words around it. */
  described: Described | undefined;
  kind: string;
}

/** Where a string stands, without its quotes, and what it would weigh as text. */
interface Weighed {
  readonly start: number;
  readonly end: number;
  readonly weight: number;
}

/** What one media object says. */
interface Described {
  payload: Weighed | undefined;
  isText: boolean;
  isNamed: boolean;
  mime: string;
}

/** A level to be used again and again. */
export function newLevel(closer: number, place: PlaceValue): Level {
  return { closer, place, typeStart: 0, typeEnd: 0, described: undefined, kind: "" };
}

/** Roles of which a string must be looked at; any other is text. */
const lookedAt = Role.MEDIA_STRING | Role.PAYLOAD | Role.SEAL | Role.TYPE | Role.MIME | Role.RESULT;

/** Whether the string of a member with that role must be passed by {@link MediaScan.string}. */
export function isMediaRelated({ role }: NamedRole): boolean {
  return (role & lookedAt) !== 0;
}

/** Deeper than any part of a message stands. */
const depthMax = 32;

const closeBracket = 0x5d;

/** Finds them in one text. */
export class MediaScan {
  readonly #text: JsonText;
  readonly #bytes: Buffer;
  readonly #found: FoundMedia[] = [];

  constructor(text: JsonText) {
    this.#text = text;
    this.#bytes = asBuffer(text.bytes);
  }

  /** Those that were found, in the order of their places. One that stands in another's object is found before it. */
  get found(): readonly FoundMedia[] {
    return this.#found.length < 2 ? this.#found : this.#found.sort((a, b) => a.start - b.start);
  }

  /** A level opens. @param member what leads to it @param depth how many levels are around it */
  enter(level: Level, outer: Level, member: NamedRole, depth: number): void {
    level.typeStart = level.typeEnd = 0;
    level.described = undefined;
    level.place = depth >= depthMax ? Place.TEXT : placeIn(outer, member.role);
    if (level.place !== Place.MEDIA) return;
    level.kind = outer.place === Place.MEDIA ? outer.kind : this.#typeOf(outer) || member.name;
    level.described = newDescribed(level.kind);
  }

  /** A level closes. */
  leave({ described }: Level): void {
    if (described !== undefined && !described.isText) this.#add(described);
  }

  /** Passes a string that {@link isMediaRelated}; `from` is its first byte. @returns behind its closing quote */
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
      if (isImage) this.#found.push({ kind: "picture", bytes, ...string });
    } else if ((role & Role.MEDIA_STRING) !== 0) {
      const described = newDescribed(this.#typeOf(level) || name);
      this.#describe(described, role, string);
      this.#add(described);
    }
    return behind;
  }

  /** A string of a media object. */
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
    const found = isNamed
      ? { kind, bytes: undefined, start: end, end, weight: 0 }
      : { kind, bytes: end - start, ...payload };
    this.#found.push(found);
  }

  /** The type of an object as far as it has come; empty: none. */
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

/** The place of a value in `outer` to which a member of that role leads; in an array the array's own. */
function placeIn(outer: Level, role: number): PlaceValue {
  if (outer.place === Place.TEXT || outer.closer === closeBracket) return outer.place;
  if ((role & Role.OPEN) !== 0) return Place.OPEN;
  return (role & Role.MEDIA) !== 0 && outer.place === Place.OPEN ? Place.MEDIA : Place.TEXT;
}

/** By the type of its content, else by the name of its part: `image_url`, `input_file`, `document` … */
function kindOf(word: string): Media["kind"] {
  if (/image/.test(word)) return "picture";
  if (/pdf|file|document|source/.test(word)) return "document";
  return "other";
}
