/** Images, audio and files in message content, both ways. */
import { create } from "@bufbuild/protobuf";
import {
  type MediaPart,
  MediaPartSchema,
  MediaType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { audioFormat, typeOfBase64 } from "../../core/media-type.ts";
import { invalid } from "../../core/validation.ts";
import type { JsonReader } from "../reader.ts";
import type { JsonRecord } from "../../wire/json/value.ts";

/**
 * Reads the part whose `type` is `image_url`. Some clients send the address alone in place of an
 * object.
 */
export function decodeImage(part: JsonReader): MediaPart {
  const object = part.isObject("image_url") ? part.requiredObject("image_url") : undefined;
  const url = object?.requiredText("url") ?? part.requiredText("image_url");
  const detail = object?.text("detail") ?? "";
  const data = splitDataUrl(url);
  return create(MediaPartSchema, {
    type: MediaType.IMAGE,
    mimeType: data?.mimeType ?? "",
    source: data ? { case: "base64", value: data.base64 } : { case: "url", value: url },
    detail,
  });
}

/** Reads the part whose `type` is `input_audio`. */
export function decodeAudio(part: JsonReader): MediaPart {
  const audio = part.requiredObject("input_audio");
  const format = audio.requiredText("format");
  return create(MediaPartSchema, {
    type: MediaType.AUDIO,
    mimeType: format === "mp3" ? "audio/mpeg" : `audio/${format}`,
    source: { case: "base64", value: audio.requiredText("data") },
  });
}

/** Reads the part whose `type` is `file`. */
export function decodeFile(part: JsonReader): MediaPart {
  const file = part.requiredObject("file");
  const id = file.text("file_id");
  const content = file.text("file_data");
  if ((id === "") === (content === "")) {
    throw file.invalid('must have either "file_data" or "file_id"');
  }
  const data = splitDataUrl(content);
  return create(MediaPartSchema, {
    type: MediaType.DOCUMENT,
    mimeType: data?.mimeType ?? "",
    source: id ? { case: "fileId", value: id } : { case: "base64", value: data?.base64 ?? content },
    filename: file.text("filename"),
  });
}

/** Options for writing a medium. */
export interface MediaOptions {
  /** Whether the request came in this style: ids of files are then the vendor's own. */
  readonly isOwn: boolean;
  /** Called with the name of what cannot be carried. */
  readonly drop: (name: string) => void;
}

/**
 * Writes a medium as parts of a user message's content.
 *
 * @throws GatewayError INVALID_REQUEST if the style has no form for it
 */
export function encodeMedia(media: MediaPart, options: MediaOptions): JsonRecord[] {
  switch (media.type) {
    case MediaType.IMAGE:
      return [encodeImage(media)];
    case MediaType.AUDIO:
      return [encodeAudio(media)];
    case MediaType.DOCUMENT:
      return encodeDocument(media, options);
    case MediaType.UNSPECIFIED:
    default:
      throw invalid(undefined, "A media part has no type: send image, document or audio");
  }
}

function encodeImage({ source, mimeType, detail }: MediaPart): JsonRecord {
  const withDetail = detail === "" ? {} : { detail };
  switch (source.case) {
    case "base64": {
      const type = mimeType || typeOfBase64(source.value) || "image/png";
      const url = dataUrl(type, source.value);
      return { type: "image_url", image_url: { url, ...withDetail } };
    }
    case "url":
      return { type: "image_url", image_url: { url: source.value, ...withDetail } };
    case "fileId":
    case "text":
    case undefined:
    default:
      throw invalid(
        undefined,
        "The model's vendor accepts images only by URL or in base64; send this image in base64",
      );
  }
}

function encodeAudio({ source, mimeType }: MediaPart): JsonRecord {
  if (source.case !== "base64") {
    throw invalid(undefined, "The model's vendor accepts audio only in base64; send it in base64");
  }
  return {
    type: "input_audio",
    input_audio: { data: source.value, format: audioFormat(mimeType) },
  };
}

/** The title and context of a document precede it as text. */
function encodeDocument(media: MediaPart, { isOwn, drop }: MediaOptions): JsonRecord[] {
  const { source, title, context, filename } = media;
  if (media.citations) drop("citations");
  const before = context === "" ? [] : [{ type: "text", text: context }];
  switch (source.case) {
    case "text":
      return [
        ...before,
        { type: "text", text: title ? `${title}\n\n${source.value}` : source.value },
      ];
    case "base64": {
      const name = filename || title || (isOwn ? "" : "document.pdf");
      // Content without a type was bare base64, and is sent the same way.
      const bare = isOwn && media.mimeType === "";
      const content = bare
        ? source.value
        : dataUrl(media.mimeType || "application/pdf", source.value);
      const file = { file_data: content, ...(name && { filename: name }) };
      return [...before, { type: "file", file }];
    }
    case "fileId":
      if (!isOwn) {
        throw invalid(
          undefined,
          "The model's vendor does not support file ids; send the file in base64",
        );
      }
      return [{ type: "file", file: { file_id: source.value, ...(filename && { filename }) } }];
    case "url":
    case undefined:
    default:
      throw invalid(
        undefined,
        "The model's vendor accepts no documents by address; send this one in base64",
      );
  }
}

function dataUrl(mimeType: string, base64: string): string {
  return `data:${mimeType};base64,${base64}`;
}

interface DataUrl {
  readonly mimeType: string;
  readonly base64: string;
}

/** Split at the first comma rather than by a pattern: the rest may be megabytes. */
function splitDataUrl(url: string): DataUrl | undefined {
  const comma = url.indexOf(",");
  const head = comma < 0 ? "" : url.slice(0, comma);
  if (!/^data:/i.test(head)) return undefined;
  const content = url.slice(comma + 1);
  const mark = /;base64$/i.exec(head);
  if (mark) return { mimeType: head.slice(5, mark.index), base64: content };
  const bytes = content.replaceAll(/%([\da-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return { mimeType: head.slice(5), base64: Buffer.from(bytes, "latin1").toString("base64") };
}
