/** Pictures and documents, into blocks for a vendor. */
import { type MediaPart, MediaType } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { JsonBranch } from "./json-text.ts";
import { type RequestWriter, refused } from "./request-writer.ts";

/** How the base64 of a file begins, for files whose type was not told. */
const beginnings: readonly (readonly [string, string])[] = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"],
  ["JVBER", "application/pdf"],
];

/** The block. @throws GatewayError INVALID_REQUEST for what the style has no block for */
export function encodeMedia(media: MediaPart, writer: RequestWriter): JsonBranch {
  if (media.source.case === "fileId" && !writer.isOwn) {
    throw refused(
      "A file id of another vendor means nothing to this model: send the file itself or its address",
      "file_id",
    );
  }
  if (media.detail !== "" && media.detail !== "auto") writer.drop("detail");
  switch (media.type) {
    case MediaType.IMAGE:
      return { type: "image", source: imageSource(media) };
    case MediaType.DOCUMENT:
      return encodeDocument(media);
    case MediaType.AUDIO:
      throw refused("This model takes no audio: send text, pictures or documents", "input_audio");
    case MediaType.UNSPECIFIED:
    default:
      throw refused("The type of a media part is missing", "type");
  }
}

function mimeTypeOf({ mimeType, source }: MediaPart): string {
  if (mimeType !== "" || source.case !== "base64") return mimeType;
  return beginnings.find(([start]) => source.value.startsWith(start))?.[1] ?? "";
}

function imageSource(media: MediaPart): JsonBranch {
  const { source } = media;
  switch (source.case) {
    case "base64": {
      const media_type = mimeTypeOf(media);
      if (media_type === "") throw refused("The media type of a picture is missing", "media_type");
      return { type: "base64", media_type, data: source.value };
    }
    case "url":
      return { type: "url", url: source.value };
    case "fileId":
      return { type: "file", file_id: source.value };
    case "text":
    case undefined:
    default:
      throw refused("A picture has no source: send its bytes or its address", "image");
  }
}

function encodeDocument(media: MediaPart): JsonBranch {
  const mimeType = mimeTypeOf(media);
  if (mimeType.startsWith("image/")) return { type: "image", source: imageSource(media) };
  const title = media.title || media.filename;
  return {
    type: "document",
    source: documentSource(media, mimeType),
    ...(title && { title }),
    ...(media.context && { context: media.context }),
    ...(media.citations && { citations: { enabled: true } }),
  };
}

function documentSource({ source }: MediaPart, mimeType: string): JsonBranch {
  switch (source.case) {
    case "base64":
      if (isText(mimeType)) return textSource(Buffer.from(source.value, "base64").toString());
      if (mimeType === "application/pdf") {
        return { type: "base64", media_type: mimeType, data: source.value };
      }
      throw refused(
        `Documents of type "${mimeType}" are not taken by this model: send PDF or plain text`,
        "media_type",
      );
    case "url":
      return { type: "url", url: source.value };
    case "fileId":
      return { type: "file", file_id: source.value };
    case "text":
      return textSource(source.value);
    case undefined:
    default:
      throw refused("A document has no source: send its bytes, text or address", "document");
  }
}

function textSource(data: string): JsonBranch {
  return { type: "text", media_type: "text/plain", data };
}

function isText(mimeType: string): boolean {
  return mimeType.startsWith("text/") || mimeType === "application/json";
}
