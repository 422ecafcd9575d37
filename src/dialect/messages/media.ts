/**
 * Images and documents, both ways: blocks of a request into parts, and parts into blocks for a
 * vendor.
 */
import { isUtf8 } from "node:buffer";
import { create } from "@bufbuild/protobuf";
import {
  type MediaPart,
  MediaPartSchema,
  MediaType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { typeOfBase64 } from "../../core/media-type.ts";
import { invalid } from "../../core/validation.ts";
import type { JsonBranch } from "../../wire/json/json-tree.ts";
import type { JsonReader } from "../reader.ts";
import { isRecord } from "../../wire/json/value.ts";
import type { PartKind } from "./wire.ts";
import type { EncodeContext } from "./encode-context.ts";

type Source = MediaPart["source"];

/** A picture; `undefined` if its source is of a type that is not known here. */
export function decodeImage(block: JsonReader): PartKind | undefined {
  const found = decodeSource(block.requiredObject("source"));
  if (found === undefined) return undefined;
  const value = create(MediaPartSchema, { type: MediaType.IMAGE, ...found });
  return { case: "media", value };
}

/** A document; `undefined` if its source is of a type that is not known here. */
export function decodeDocument(block: JsonReader): PartKind | undefined {
  const found = decodeSource(block.requiredObject("source"));
  if (found === undefined) return undefined;
  const value = create(MediaPartSchema, {
    type: MediaType.DOCUMENT,
    ...found,
    title: block.text("title"),
    context: block.text("context"),
    citations: block.object("citations")?.flag("enabled") ?? false,
  });
  return { case: "media", value };
}

interface Found {
  readonly mimeType?: string;
  readonly source: Source;
}

function decodeSource(source: JsonReader): Found | undefined {
  switch (source.text("type")) {
    case "base64": {
      const value = source.requiredText("data");
      const mimeType = source.requiredText("media_type");
      return { mimeType, source: { case: "base64", value } };
    }
    case "url":
      return { source: { case: "url", value: source.requiredText("url") } };
    case "file":
      return { source: { case: "fileId", value: source.requiredText("file_id") } };
    case "text":
      return plainText(source.text("data"));
    case "content":
      return decodeContentSource(source);
    default:
      return undefined;
  }
}

/** A document in blocks. Where they are nothing but texts, it is as good as plain text. */
function decodeContentSource(source: JsonReader): Found | undefined {
  if (!source.isArray("content")) return plainText(source.text("content"));
  const value = source.value("content") as readonly unknown[];
  const texts = value.map((block) =>
    isRecord(block) && block["type"] === "text" && typeof block["text"] === "string"
      ? block["text"]
      : undefined,
  );
  return texts.every((text) => text !== undefined) ? plainText(texts.join("\n\n")) : undefined;
}

function plainText(value: string): Found {
  return { mimeType: "text/plain", source: { case: "text", value } };
}

/** The block. @throws GatewayError INVALID_REQUEST for what the style has no block for */
export function encodeMedia(media: MediaPart, writer: EncodeContext): JsonBranch {
  if (media.source.case === "fileId" && !writer.isOwn) {
    throw invalid(
      "file_id",
      "This model's vendor does not know this file id: send the file itself or its address",
    );
  }
  if (media.detail !== "" && media.detail !== "auto") writer.drop("detail");
  switch (media.type) {
    case MediaType.IMAGE:
      return { type: "image", source: imageSource(media) };
    case MediaType.DOCUMENT:
      return encodeDocument(media);
    case MediaType.AUDIO:
      throw invalid("input_audio", "This model accepts no audio: send text, images or documents");
    case MediaType.UNSPECIFIED:
    default:
      throw invalid("type", "The type of a media part is missing");
  }
}

function mimeTypeOf({ mimeType, source }: MediaPart): string {
  if (mimeType !== "" || source.case !== "base64") return mimeType;
  return typeOfBase64(source.value);
}

function imageSource(media: MediaPart): JsonBranch {
  const { source } = media;
  switch (source.case) {
    case "base64": {
      const media_type = mimeTypeOf(media);
      if (media_type === "") throw invalid("media_type", "The media type of an image is missing");
      return { type: "base64", media_type, data: source.value };
    }
    case "url":
      return { type: "url", url: source.value };
    case "fileId":
      return { type: "file", file_id: source.value };
    case "text":
    case undefined:
    default:
      throw invalid("image", "An image has no source: send its bytes or its URL");
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

function documentSource({ source, filename }: MediaPart, mimeType: string): JsonBranch {
  switch (source.case) {
    case "base64":
      if (isText(mimeType)) return textSource(Buffer.from(source.value, "base64").toString());
      if (isUnnamed(mimeType) && textNames.test(filename)) {
        const bytes = Buffer.from(source.value, "base64");
        if (isUtf8(bytes) && !bytes.includes(0)) return textSource(bytes.toString());
      }
      if (mimeType === "application/pdf") {
        return { type: "base64", media_type: mimeType, data: source.value };
      }
      throw invalid(
        "media_type",
        `Documents of type "${mimeType}" are not accepted by this model: send PDF or plain text`,
      );
    case "url":
      return { type: "url", url: source.value };
    case "fileId":
      return { type: "file", file_id: source.value };
    case "text":
      return textSource(source.value);
    case undefined:
    default:
      throw invalid("document", "A document has no source: send its bytes, text or address");
  }
}

function textSource(data: string): JsonBranch {
  return { type: "text", media_type: "text/plain", data };
}

/** Names of text files. Clients without a table of types send them as octet streams. */
const textNames =
  /\.(?:txt|text|md|markdown|rst|csv|tsv|log|json|jsonl|ya?ml|toml|ini|xml|html?|css|sql|sh|py|js|mjs|ts|tsx|jsx|java|kt|go|rs|rb|php|c|h|cc|cpp|hpp|cs|swift|lua|r)$/i;

/** Whether the type says nothing about the content. */
function isUnnamed(mimeType: string): boolean {
  return mimeType === "" || mimeType === "application/octet-stream";
}

function isText(mimeType: string): boolean {
  return mimeType.startsWith("text/") || mimeType === "application/json";
}
