/** Spellings of media types, such as `image/jpg` for `image/jpeg`. */

/** Other names of known types. */
const aliases: ReadonlyMap<string, string> = new Map([
  ["image/jpg", "image/jpeg"],
  ["image/jpe", "image/jpeg"],
  ["image/jfif", "image/jpeg"],
  ["image/pjpeg", "image/jpeg"],
  ["image/x-jpeg", "image/jpeg"],
  ["image/x-jpg", "image/jpeg"],
  ["image/x-png", "image/png"],
  ["image/x-gif", "image/gif"],
  ["image/x-webp", "image/webp"],
  ["audio/mp3", "audio/mpeg"],
  ["audio/mpg", "audio/mpeg"],
  ["audio/mpga", "audio/mpeg"],
  ["audio/mpeg3", "audio/mpeg"],
  ["audio/x-mp3", "audio/mpeg"],
  ["audio/x-mpeg", "audio/mpeg"],
  ["audio/x-mpeg-3", "audio/mpeg"],
  ["audio/x-wav", "audio/wav"],
  ["audio/wave", "audio/wav"],
  ["audio/x-pn-wav", "audio/wav"],
  ["audio/vnd.wave", "audio/wav"],
  ["audio/x-flac", "audio/flac"],
  ["audio/m4a", "audio/mp4"],
  ["audio/x-m4a", "audio/mp4"],
  ["audio/x-aac", "audio/aac"],
  ["audio/x-ogg", "audio/ogg"],
  ["application/ogg", "audio/ogg"],
  ["application/x-pdf", "application/pdf"],
  ["application/acrobat", "application/pdf"],
  ["text/pdf", "application/pdf"],
  ["text/x-pdf", "application/pdf"],
  ["text/json", "application/json"],
  ["application/x-json", "application/json"],
  ["application/jsonl", "application/x-ndjson"],
  ["text/x-markdown", "text/markdown"],
  ["application/csv", "text/csv"],
  ["text/x-csv", "text/csv"],
]);

/** The usual name of a type: in lower case, without parameters. Empty for none. */
export function mediaType(written: string): string {
  const bare = (written.split(";")[0] ?? "").trim().toLowerCase();
  return aliases.get(bare) ?? bare;
}

/** The first characters of a file's base64, by media type. */
const beginnings: readonly (readonly [string, string])[] = [
  ["iVBOR", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lG", "image/gif"],
  ["UklG", "image/webp"],
  ["JVBER", "application/pdf"],
];

/** The type of an image or document by its first bytes; empty if it is unknown. */
export function typeOfBase64(base64: string): string {
  return beginnings.find(([start]) => base64.startsWith(start))?.[1] ?? "";
}

/** The word for a type of audio in OpenAI's `format`: `mp3`, `wav`, `m4a` …. */
export function audioFormat(type: string): string {
  const word = mediaType(type).replace(/^audio\/(?:x-)?/, "");
  return formats.get(word) ?? word;
}

const formats: ReadonlyMap<string, string> = new Map([
  ["mpeg", "mp3"],
  ["mp4", "m4a"],
]);
