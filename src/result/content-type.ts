/**
 * Detects the type of a file: by its first bytes if these are conclusive, otherwise by its declared
 * types. A file that a browser could run as a page is served as plain bytes.
 */

import { mediaType } from "../core/media-type.ts";

/** The headers with which a kind of file is served. */
export interface FileKind {
  readonly contentType: string;
  /** Of its address, without a dot. */
  readonly extension: string;
}

/** Number of bytes of a file that {@link fileKind} reads. */
export const headBytes = 64;

const plainBytes: FileKind = { contentType: "application/octet-stream", extension: "bin" };

/** Types with a signature in their first bytes: a declaration without the signature is ignored. */
const signatures: readonly (FileKind & { readonly is: (head: Buffer) => boolean })[] = [
  kind("image/png", "png", starts("\x89PNG\r\n\x1a\n")),
  kind("image/jpeg", "jpg", starts("\xff\xd8\xff")),
  kind("image/gif", "gif", (head) => starts("GIF87a")(head) || starts("GIF89a")(head)),
  kind("image/webp", "webp", (head) => starts("RIFF")(head) && starts("WEBP", 8)(head)),
  kind("audio/wav", "wav", (head) => starts("RIFF")(head) && starts("WAVE", 8)(head)),
  kind("image/avif", "avif", (head) => isBrand(head, ["avif", "avis"])),
  kind("image/heic", "heic", (head) => isBrand(head, ["heic", "heix", "mif1"])),
  kind("audio/mp4", "m4a", (head) => isBrand(head, ["M4A ", "M4B "])),
  kind("video/quicktime", "mov", (head) => isBrand(head, ["qt  "])),
  kind("video/mp4", "mp4", starts("ftyp", 4)),
  kind("audio/flac", "flac", starts("fLaC")),
  kind("audio/ogg", "ogg", starts("OggS")),
  kind("application/pdf", "pdf", starts("%PDF-")),
  kind("model/gltf-binary", "glb", starts("glTF")),
];

/** Matroska and WebM, for audio or video: the declared type decides. */
const matroska = starts("\x1a\x45\xdf\xa3");

/** Types that are accepted as declared, and their extensions. */
const said: ReadonlyMap<string, string> = new Map([
  ["image/svg+xml", "svg"],
  ["image/bmp", "bmp"],
  ["image/tiff", "tiff"],
  ["image/jxl", "jxl"],
  ["image/vnd.radiance", "hdr"],
  ["audio/mpeg", "mp3"],
  ["audio/aac", "aac"],
  ["audio/opus", "opus"],
  ["audio/webm", "webm"],
  ["audio/basic", "au"],
  ["audio/pcm", "pcm"],
  ["audio/l16", "pcm"],
  ["video/webm", "webm"],
  ["video/x-matroska", "mkv"],
  ["video/mpeg", "mpeg"],
  ["video/mp2t", "ts"],
  ["text/plain", "txt"],
  ["text/csv", "csv"],
  ["text/vtt", "vtt"],
  ["application/json", "json"],
  ["application/x-ndjson", "jsonl"],
  ["application/zip", "zip"],
  ["model/gltf+json", "gltf"],
]);

/** Types whose content may begin like HTML. */
const mayBePage = /^(?:text\/|image\/svg)/;

/** Text types, always UTF-8: their source is the gateway or a vendor's JSON. */
const texts = new Set(["text/plain", "text/csv", "text/vtt"]);

/**
 * Detects the type of a file.
 *
 * @param head its first {@link headBytes} bytes, or all of it
 * @param declared its declared types, best first; parameters are ignored
 */
export function fileKind(head: Buffer, declared: readonly (string | undefined)[]): FileKind {
  const types = declared.flatMap((type) => (type === undefined ? [] : [mediaType(type)]));
  const seen = signatures.find(({ is }) => is(head));
  if (seen !== undefined) {
    // An MP4 container has audio alone, or video.
    const isAudioOnly = seen.contentType === "video/mp4" && types[0] === "audio/mp4";
    const { contentType, extension } = seen;
    return isAudioOnly
      ? { contentType: "audio/mp4", extension: "m4a" }
      : { contentType, extension };
  }
  if (starts("ID3")(head)) return { contentType: "audio/mpeg", extension: "mp3" };
  if (matroska(head)) {
    return types.includes("audio/webm")
      ? { contentType: "audio/webm", extension: "webm" }
      : { contentType: "video/webm", extension: "webm" };
  }
  const contentType = types.find((type) => said.has(type));
  // An error page in place of a video; a text may begin like one.
  if (isPage(head) && !mayBePage.test(contentType ?? "")) return plainBytes;
  const extension = contentType && said.get(contentType);
  if (contentType === undefined || extension === undefined) return plainBytes;
  const charset = texts.has(contentType) ? "; charset=utf-8" : "";
  return { contentType: `${contentType}${charset}`, extension };
}

function kind(contentType: string, extension: string, is: (head: Buffer) => boolean) {
  return { contentType, extension, is };
}

function starts(signature: string, at = 0): (head: Buffer) => boolean {
  const wanted = Buffer.from(signature, "latin1");
  return (head) => head.subarray(at, at + wanted.length).equals(wanted);
}

/** Whether an ISO media file has one of these brands, which follow `ftyp`. */
function isBrand(head: Buffer, brands: readonly string[]): boolean {
  return starts("ftyp", 4)(head) && brands.includes(head.toString("latin1", 8, 12));
}

/** Whether the content begins like HTML or XML. */
function isPage(head: Buffer): boolean {
  return /^\ufeff?\s*<[!?a-z]/i.test(head.toString("utf8"));
}
