/**
 * Finds the pictures, documents and recordings in a request body of any style, in one pass over its structure:
 * strings are skipped natively and nothing is parsed (at most 2 ms for 1 MB of messages; a picture of any size costs
 * nothing).
 *
 * Only where vendors read them as such: in the parts of messages. The same words in a tool's arguments or
 * schema, in `metadata` or in a text are text, or a client could send a million tokens under the name of a
 * picture.
 */
import { endOfString, endOfValue, quote } from "./object-scan.ts";

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
}

/** Finds all, in the order of their places. @param body one JSON object, checked before */
export function findMedia(body: Buffer): readonly FoundMedia[] {
  const scan = new MediaScan(body);
  scan.value(0, "open", "");
  // One that stands in another's object is found before it.
  return scan.found.sort((a, b) => a.start - b.start);
}

/** open: parts of a conversation · media: one picture or document · text: neither, nor anything inside. */
type Place = "open" | "media" | "text";

/** Members that lead to parts of messages. `input` does so at the top only: elsewhere it is a tool's. */
const openMembers = new Set([
  "messages",
  "system",
  "content",
  "output",
  "contents",
  "parts",
  "systemInstruction",
]);

/** Members whose object is one picture, document or recording. */
const mediaMembers = new Set([
  "image_url",
  "source",
  "file",
  "input_audio",
  "video_url",
  "inline_data",
  "inlineData",
  "file_data",
  "fileData",
]);

/** Strings in a part that are such a thing themselves. */
const mediaStrings = new Set(["image_url", "file_data", "file_url", "file_id"]);

/** Strings in a media object that carry or name it. */
const payloads = new Set(["url", "data", "file_data", "file_id", "file_uri", "fileUri"]);

/** Strings in a part that only their vendor can read. */
const seals = new Set(["encrypted_content", "signature", "thoughtSignature", "thought_signature"]);

/** What one media object says. */
interface Described {
  start: number;
  end: number;
  isText: boolean;
  isNamed: boolean;
  mime: string;
}

class MediaScan {
  readonly found: FoundMedia[] = [];
  readonly #bytes: Buffer;
  #depth = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Passes the value at `from`; returns where it ends. `kind`: what a media object in it is, from outside. */
  value(from: number, place: Place, kind: string): number {
    const at = this.#skipSpace(from);
    const first = this.#bytes[at];
    const isDeep = this.#depth >= depthMax;
    if (place === "text" || isDeep || (first !== openBrace && first !== openBracket)) {
      return endOfValue(this.#bytes, at, this.#bytes.length);
    }
    this.#depth++;
    const end =
      first === openBracket ? this.#array(at, place, kind) : this.#object(at, place, kind);
    this.#depth--;
    return end;
  }

  #array(from: number, place: Place, kind: string): number {
    let at = this.#skipSpace(from + 1);
    while (at < this.#bytes.length && this.#bytes[at] !== closeBracket) {
      const end = this.value(at, place, kind);
      if (end === at) break;
      at = this.#skipSpace(end);
      if (this.#bytes[at] === comma) at++;
    }
    return at + 1;
  }

  #object(from: number, place: Place, kind: string): number {
    const bytes = this.#bytes;
    const described: Described = { start: 0, end: 0, isText: false, isNamed: true, mime: kind };
    let type = "";
    let at = this.#skipSpace(from + 1);
    while (at < bytes.length && bytes[at] === quote) {
      const keyEnd = endOfString(bytes, at + 1, bytes.length);
      const key = this.#name(at + 1, keyEnd);
      const valueStart = this.#skipSpace(this.#skipSpace(keyEnd + 1) + 1);
      const isString = bytes[valueStart] === quote;
      let end: number;
      if (!isString) {
        end = this.value(valueStart, this.#placeOf(key, place), type || key);
      } else {
        end = Math.min(bytes.length, endOfString(bytes, valueStart + 1, bytes.length) + 1);
        if (key === "type")
          type = bytes.toString("latin1", valueStart + 1, Math.min(end - 1, valueStart + 33));
        if (place === "media") this.#describe(described, key, valueStart + 1, end - 1);
        else this.#string(key, type, valueStart + 1, end - 1);
      }
      if (end <= valueStart) break;
      at = this.#skipSpace(end);
      if (bytes[at] === comma) at = this.#skipSpace(at + 1);
    }
    if (place === "media" && described.end > 0 && !described.isText) this.#add(described);
    return at + 1;
  }

  #placeOf(key: string, place: Place): Place {
    if (openMembers.has(key) || (key === "input" && this.#depth === 1)) return "open";
    return place === "open" && mediaMembers.has(key) ? "media" : "text";
  }

  /** A string of a part. */
  #string(key: string, type: string, start: number, end: number): void {
    const bytes = end - start;
    if (seals.has(key)) this.found.push({ kind: "sealed", bytes, start, end });
    else if (key === "result" && type === "image_generation_call") {
      this.found.push({ kind: "picture", bytes, start, end });
    } else if (mediaStrings.has(key)) {
      const described = { start: 0, end: 0, isText: false, isNamed: true, mime: type || key };
      this.#describe(described, key, start, end);
      this.#add(described);
    }
  }

  /** A string of a media object. */
  #describe(described: Described, key: string, start: number, end: number): void {
    const bytes = this.#bytes;
    if (key === "media_type" || key === "mimeType" || key === "mime_type") {
      described.mime = bytes.toString("latin1", start, Math.min(end, start + 64));
    } else if (key === "type") {
      described.isText = bytes.toString("latin1", start, end) === "text";
    } else if (payloads.has(key) || mediaStrings.has(key)) {
      const head = bytes.toString("latin1", start, Math.min(end, start + 64));
      const mime = /^data:([^;,]*)/.exec(head)?.[1];
      if (mime !== undefined) described.mime = mime;
      described.isNamed = mime === undefined && !base64Members.has(key);
      described.start = start;
      described.end = end;
    }
  }

  #add({ start, end, isNamed, mime }: Described): void {
    const bytes = isNamed ? undefined : end - start;
    const from = isNamed ? end : start;
    this.found.push({ kind: kindOf(mime), bytes, start: from, end });
  }

  #name(start: number, end: number): string {
    const name = this.#bytes.toString("latin1", start, Math.min(end, start + 64));
    if (!name.includes("\\")) return name;
    try {
      return JSON.parse(`"${name}"`) as string;
    } catch {
      return name;
    }
  }

  #skipSpace(from: number): number {
    let at = from;
    while ((this.#bytes[at] ?? 0x21) <= 0x20) at++;
    return at;
  }
}

/** Deeper than any part of a message stands. */
const depthMax = 32;

/** Members that have base64 without saying so. */
const base64Members = new Set(["data", "file_data"]);

/** By the type of its content, else by the name of its part: `image_url`, `input_file`, `document` … */
function kindOf(word: string): Media["kind"] {
  if (/image/.test(word)) return "picture";
  if (/pdf|file|document|source/.test(word)) return "document";
  return "other";
}

const openBrace = 0x7b;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const comma = 0x2c;
