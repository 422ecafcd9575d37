/** The content parts of responses messages and tool results, read from a request. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type CacheHint,
  CacheHintSchema,
  type Citation,
  CitationSchema,
  type Extra,
  type Part,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { countAt, type JsonRecord, parseRecord, textAt } from "../json.ts";
import type { JsonReader } from "../json-reader.ts";
import { newExtra, newPart, newText, textPart } from "../parts.ts";
import { decodeMedia } from "./media.ts";

/** What a member that is a string or an array of content parts holds. */
export interface Content {
  readonly parts: Part[];
  /** Whether it was a string. */
  readonly plain: boolean;
}

/** Reads a member that is a string or an array of content parts. */
export function decodeContent(item: JsonReader, name: string): Content {
  const value = item.value(name);
  if (typeof value === "string") return { parts: [textPart(value)], plain: true };
  if (!item.isArray(name)) throw item.invalid("must be a string or an array of parts", name);
  return { parts: item.objects(name).map(decodePart), plain: false };
}

function decodePart(part: JsonReader): Part {
  const kind = partKind(part);
  // An opaque part has all of it.
  if (kind.case === "opaque") return newPart(kind);
  const { cacheHint, extra } = decodeBreakpoint(part);
  const decoded = newPart(kind, extrasOf(part));
  if (cacheHint !== undefined) decoded.cacheHint = cacheHint;
  if (extra !== undefined) decoded.extras.push(extra);
  return decoded;
}

/** Where a cached prefix may end: as a hint, or whole where more is said than the contract can carry. */
function decodeBreakpoint(part: JsonReader): { cacheHint?: CacheHint; extra?: Extra } {
  const name = "prompt_cache_breakpoint";
  const json = part.json(name);
  if (json === "") return {};
  const { mode, ttl, ...others } = parseRecord(json) ?? {};
  const isKnown = mode === "explicit" && (ttl === undefined || typeof ttl === "string");
  if (!isKnown || Object.keys(others).length > 0) {
    return { extra: newExtra(name, json) };
  }
  return { cacheHint: create(CacheHintSchema, { ttl: ttl ?? "" }) };
}

/** What items and parts carry when there is nothing to say; clients send it back as it came. */
const silent: ReadonlySet<string> = new Set(['status:"completed"', "logprobs:[]"]);

/** The members of an item or part that were not read. */
export function extrasOf(reader: JsonReader): Extra[] {
  const extras = reader.extras();
  if (extras.length === 0) return extras;
  return extras.filter(({ name, json }) => !silent.has(`${name}:${json}`));
}

function partKind(part: JsonReader): Part["kind"] {
  const type = part.requiredText("type");
  switch (type) {
    case "input_text":
      return { case: "text", value: newText(requiredString(part, "text")) };
    case "output_text": {
      const citations = part.objects("annotations").map((each) => decodeCitation(each.toJson()));
      return { case: "text", value: newText(requiredString(part, "text"), citations) };
    }
    case "refusal": {
      const text = requiredString(part, "refusal");
      return { case: "refusal", value: { $typeName: "uas.inference.v1.RefusalPart", text } };
    }
    default: {
      const media = decodeMedia(part);
      if (media !== undefined) return { case: "media", value: media };
    }
  }
  return opaqueContent(part, type);
}

/** Content types of which all begin like this; an item's type never does. */
export const contentType = /^(?:input|output)_/;

function opaqueContent(part: JsonReader, type: string): Part["kind"] {
  if (!contentType.test(type)) throw part.invalid(`"${type}" is not a known type`, "type");
  part.readAll();
  return {
    case: "opaque",
    value: {
      $typeName: "uas.inference.v1.OpaquePart",
      dialect: Dialect.RESPONSES,
      type,
      json: part.toJson(),
    },
  };
}

function requiredString(part: JsonReader, name: string): string {
  const text = part.optionalText(name);
  if (text === undefined) throw part.invalid("is missing", name);
  return text;
}

/** An annotation of a text. */
export function decodeCitation(json: string): Citation {
  const record = JSON.parse(json) as JsonRecord;
  const startIndex = countAt(record, "start_index");
  const endIndex = countAt(record, "end_index");
  return create(CitationSchema, {
    dialect: Dialect.RESPONSES,
    json,
    url: textAt(record, "url"),
    title: textAt(record, "title"),
    ...(startIndex !== undefined && { startIndex }),
    ...(endIndex !== undefined && { endIndex }),
  });
}
