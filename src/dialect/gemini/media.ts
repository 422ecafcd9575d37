/** Images, documents and audio, as parts. */
import { type MediaPart, MediaType } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { typeOfBase64 } from "../../core/media-type.ts";
import { invalid } from "../../core/validation.ts";
import type { EncodeContext } from "./encode-context.ts";
import type { GeminiBlob, GeminiPart } from "./wire.ts";

/**
 * MIME types by file extension. Gemini requires one for all bytes, and for addresses if it is
 * known.
 */
const mimeTypes: ReadonlyMap<string, string> = new Map([
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["webp", "image/webp"],
  ["gif", "image/gif"],
  ["heic", "image/heic"],
  ["heif", "image/heif"],
  ["pdf", "application/pdf"],
  ["txt", "text/plain"],
  ["md", "text/markdown"],
  ["csv", "text/csv"],
  ["html", "text/html"],
  ["xml", "text/xml"],
  ["json", "application/json"],
  ["wav", "audio/wav"],
  ["mp3", "audio/mp3"],
  ["ogg", "audio/ogg"],
  ["flac", "audio/flac"],
  ["aac", "audio/aac"],
  ["mp4", "video/mp4"],
  ["mov", "video/mov"],
  ["webm", "video/webm"],
]);

/** Writes a medium. @throws GatewayError INVALID_REQUEST if Gemini cannot get at it */
export function encodeMedia(media: MediaPart, context: EncodeContext): GeminiPart {
  noteHints(media, context);
  switch (media.source.case) {
    case "base64":
      return { inlineData: blob(media, media.source.value) };
    case "url": {
      const fileUri = media.source.value;
      const mimeType = media.mimeType || mimeOfAddress(fileUri);
      return { fileData: { fileUri, ...(mimeType && { mimeType }) } };
    }
    case "text":
      return { text: media.source.value };
    case "fileId":
      throw invalid(
        undefined,
        "a file id is not supported by this model's vendor: send the file itself",
      );
    case undefined:
      break;
  }
  throw invalid(undefined, "an image or file has no content: send its bytes or its URL");
}

function blob(media: MediaPart, data: string): GeminiBlob {
  const { mimeType: told } = media;
  // Clients without a table of types send files as octet streams, which Gemini refuses.
  const known = told === "application/octet-stream" ? "" : told;
  const seen = media.type === MediaType.AUDIO ? "" : typeOfBase64(data);
  const mimeType = known || mimeOfName(media.filename) || seen || told || mimeDefault(media);
  if (mimeType !== undefined) return { mimeType, data };
  throw invalid(
    undefined,
    "an image or audio has no MIME type: send it as a data URL that names one",
  );
}

function mimeDefault({ type }: MediaPart): string | undefined {
  return type === MediaType.DOCUMENT ? "application/pdf" : undefined;
}

/** Reports hints that Gemini has no member for. */
function noteHints(media: MediaPart, context: EncodeContext): void {
  const { detail, filename, title, context: about, citations } = media;
  if (detail !== "" && detail !== "auto") context.drop("detail");
  if (filename !== "") context.drop("filename");
  if (title !== "") context.drop("title");
  if (about !== "") context.drop("context");
  if (citations) context.drop("citations");
}

function mimeOfName(name: string): string | undefined {
  const [, extension = ""] = /\.(\w+)$/.exec(name) ?? [];
  return mimeTypes.get(extension.toLowerCase());
}

function mimeOfAddress(address: string): string | undefined {
  return URL.canParse(address) ? mimeOfName(new URL(address).pathname) : undefined;
}
