/** Pictures and documents of a request, into parts. */
import { create } from "@bufbuild/protobuf";
import {
  type MediaPart,
  MediaPartSchema,
  MediaType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { isRecord } from "../json.ts";
import type { JsonReader } from "../json-reader.ts";
import type { PartKind } from "./decode-blocks.ts";

type Source = MediaPart["source"];

/** A picture; `undefined` where its source is of a type that is not known here. */
export function decodeImage(block: JsonReader): PartKind | undefined {
  const found = decodeSource(block.requiredObject("source"));
  if (found === undefined) return undefined;
  const value = create(MediaPartSchema, { type: MediaType.IMAGE, ...found });
  return { case: "media", value };
}

/** A document; `undefined` where its source is of a type that is not known here. */
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
