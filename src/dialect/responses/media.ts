/** Pictures, documents and sound in responses content. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type MediaPart,
  MediaPartSchema,
  MediaType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { audioFormat, typeOfBase64 } from "../../core/media-type.ts";
import { invalid } from "../../core/validation.ts";
import { decodeUri } from "../../wire/json/escapes.ts";
import type { JsonReader } from "../reader.ts";
import type { JsonRecord } from "../../wire/json/value.ts";

type MediaInit = MessageInitShape<typeof MediaPartSchema>;

/** The content parts that carry media, by their type on the wire. */
const readers: Readonly<Record<string, (part: JsonReader) => MediaInit>> = {
  input_image: (part) => ({
    type: MediaType.IMAGE,
    detail: part.text("detail"),
    ...sourceOf(part, { url: "image_url", data: "" }),
  }),
  input_file: (part) => ({
    type: MediaType.DOCUMENT,
    filename: part.text("filename"),
    detail: part.text("detail"),
    ...sourceOf(part, { url: "file_url", data: "file_data" }),
  }),
  input_audio: (part) => {
    const encodeAudio = part.requiredObject("input_audio");
    return {
      type: MediaType.AUDIO,
      mimeType: `audio/${encodeAudio.requiredText("format")}`,
      source: { case: "base64", value: encodeAudio.requiredText("data") },
    };
  },
};

/** Reads a content part that carries media; `undefined` if it is of another type. */
export function decodeMedia(part: JsonReader): MediaPart | undefined {
  const type = part.text("type");
  // Not `__proto__` or another name that every object has.
  const reader = Object.hasOwn(readers, type) ? readers[type] : undefined;
  return reader && create(MediaPartSchema, reader(part));
}

interface SourceNames {
  readonly url: string;
  /** Empty if the style has none. */
  readonly data: string;
}

function sourceOf(part: JsonReader, names: SourceNames): MediaInit {
  const id = part.text("file_id");
  if (id !== "") return { source: { case: "fileId", value: id } };
  const data = names.data === "" ? "" : part.text(names.data);
  if (data !== "") return fromDataUrl(data) ?? { source: { case: "base64", value: data } };
  const url = part.requiredText(names.url);
  const media = fromDataUrl(url);
  if (media !== undefined) return media;
  if (/^(?:https?|gs):\/\//i.test(url)) return { source: { case: "url", value: url } };
  throw part.invalid("must be an http, https or gs address, or a data: URL", names.url);
}

const dataUrl = /^data:([^,]{0,255}?)(;base64)?,/i;

function fromDataUrl(url: string): MediaInit | undefined {
  const found = dataUrl.exec(url.slice(0, 300));
  if (found === null) return undefined;
  const data = url.slice(found[0].length);
  const value = found[2] === undefined ? Buffer.from(decodeUri(data)).toString("base64") : data;
  return { mimeType: found[1] ?? "", source: { case: "base64", value } };
}

/** Properties of the target that decide how media are written. */
export interface MediaTarget {
  /** Whether the request came in this style: its file ids are then the vendor's own. */
  readonly isOwn: boolean;
  readonly drop: (name: string) => void;
}

/**
 * Writes media as a content part.
 *
 * @throws GatewayError INVALID_REQUEST for what the vendor could not find or read
 */
export function encodeMedia(media: MediaPart, target: MediaTarget): JsonRecord {
  if (media.citations) target.drop("citations");
  switch (media.type) {
    case MediaType.IMAGE:
      return {
        type: "input_image",
        ...imageSource(media, target),
        // The vendors' types demand it.
        detail: media.detail || "auto",
      };
    case MediaType.AUDIO:
      return { type: "input_audio", input_audio: audio(media) };
    case MediaType.DOCUMENT:
      return documentPart(media, target);
    case MediaType.UNSPECIFIED:
    default:
      throw invalid(undefined, "A media part has no type: send image, document or audio");
  }
}

function imageSource(media: MediaPart, target: MediaTarget): JsonRecord {
  const { source } = media;
  switch (source.case) {
    case "url":
      return { image_url: source.value };
    case "fileId":
      return { file_id: fileId(source.value, target) };
    case "base64":
      return { image_url: `data:${imageType(media, source.value)};base64,${source.value}` };
    case "text":
    case undefined:
    default:
      throw invalid(undefined, "An image must have an address or its bytes in base64");
  }
}

function imageType({ mimeType }: MediaPart, base64: string): string {
  const type = mimeType || typeOfBase64(base64);
  if (type !== "") return type;
  throw invalid(undefined, "An image in base64 must have a media type, for example image/png");
}

function fileId(id: string, { isOwn }: MediaTarget): string {
  if (isOwn) return id;
  throw invalid(
    undefined,
    `The file "${id}" is not known to the model's vendor; send its content instead`,
  );
}

function audio({ source, mimeType }: MediaPart): JsonRecord {
  if (source.case !== "base64") throw invalid(undefined, "Audio must be sent in base64");
  return { data: source.value, format: audioFormat(mimeType) };
}

function documentPart(media: MediaPart, target: MediaTarget): JsonRecord {
  const { source, filename, detail, title, context, mimeType } = media;
  const named = { ...(filename && { filename }), ...(detail && { detail }) };
  const head = [title, context].filter((line) => line !== "");
  switch (source.case) {
    case "text":
      // Every vendor reads text; few read text files.
      return { type: "input_text", text: [...head, source.value].join("\n\n") };
    case "url":
    case "fileId":
    case "base64":
      break;
    case undefined:
    default:
      throw invalid(undefined, "A document must have an address, its bytes in base64 or its text");
  }
  if (context !== "") target.drop("context");
  if (source.case === "url") return { type: "input_file", ...named, file_url: source.value };
  if (source.case === "fileId") {
    return { type: "input_file", ...named, file_id: fileId(source.value, target) };
  }
  // Without a type it came as bare base64: vendors of other styles take that for PDF.
  const type = target.isOwn ? mimeType : mimeType || "application/pdf";
  const data = type === "" ? source.value : `data:${type};base64,${source.value}`;
  const name = target.isOwn ? filename : filename || title || defaultName(type);
  return { type: "input_file", ...named, ...(name && { filename: name }), file_data: data };
}

/** Bytes without a name are refused. */
function defaultName(mimeType: string): string {
  const [, kind = ""] = mimeType.split(/[/;]/);
  return `document.${kind === "plain" ? "txt" : kind || "pdf"}`;
}
