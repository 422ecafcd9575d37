/** The content of responses messages and tool results, written for a vendor. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Citation,
  type Part,
  Role,
  type TextPart,
  type ToolResult,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../body-members.ts";
import type { JsonRecord } from "../json.ts";
import { contentType } from "./decode-content.ts";
import { type EncodeContext, parsedJson } from "./encode-context.ts";
import { encodeMedia } from "./media.ts";

/** Whether a part stands inside a message; all others are items of their own. */
export function isContent({ kind }: Part): boolean {
  switch (kind.case) {
    case "text":
    case "media":
    case "refusal":
      return true;
    case "opaque":
      return contentType.test(kind.value.type);
    case "toolCall":
    case "toolResult":
    case "reasoning":
    case undefined:
    default:
      return false;
  }
}

/** Writes one part of a message. */
export function encodePart(part: Part, role: Role, context: EncodeContext): JsonRecord {
  const breakpoint = context.breakpoint(part.cacheHint, role);
  return context.withExtras({ ...content(part, role, context), ...breakpoint }, part.extras);
}

function content({ kind }: Part, role: Role, context: EncodeContext): JsonRecord {
  const isAssistant = role === Role.ASSISTANT;
  switch (kind.case) {
    case "text":
      return isAssistant ? outputText(kind.value, context) : inputText(kind.value, context);
    case "refusal":
      return isAssistant
        ? { type: "refusal", refusal: kind.value.text }
        : { type: "input_text", text: kind.value.text };
    case "media":
      if (!isAssistant) return encodeMedia(kind.value, context);
      throw invalid("The model's vendor takes text only in messages of the assistant");
    case "opaque":
      if (kind.value.dialect === Dialect.RESPONSES) {
        return parsedJson(kind.value.json, "turns.parts.opaque.json") as JsonRecord;
      }
      throw foreign(kind.value.type);
    case "toolCall":
    case "toolResult":
    case "reasoning":
    case undefined:
    default:
      throw invalid("A part must tell what it is");
  }
}

/** What is said of a part that only another style knows. */
export function foreign(type: string): Error {
  return invalid(`"${type}" is not supported with this model: leave it out of the conversation`);
}

function inputText({ text, citations }: TextPart, context: EncodeContext): JsonRecord {
  if (citations.length > 0) context.drop("citations");
  return { type: "input_text", text };
}

function outputText({ text, citations }: TextPart, context: EncodeContext): JsonRecord {
  const annotations: unknown[] = [];
  for (const citation of citations) {
    const annotation = annotationJson(citation, text.length);
    if (annotation === undefined) context.drop("citations");
    else annotations.push(annotation);
  }
  return { type: "output_text", text, annotations };
}

/**
 * A citation as an annotation of a text; `undefined` where this style has none such.
 *
 * @param length the text's length: what a citation without a place is about is all of it
 */
export function annotationJson(citation: Citation, length: number): unknown {
  if (citation.dialect === Dialect.RESPONSES && citation.json !== "") {
    return JSON.parse(citation.json);
  }
  if (citation.url === "") return undefined;
  return {
    type: "url_citation",
    url: citation.url,
    title: citation.title,
    start_index: citation.startIndex ?? 0,
    end_index: citation.endIndex ?? length,
  };
}

/** What a tool answered: a string where it is text only, else parts. A failure is told in words: this
 * style has no other place for it. */
export function resultOutput(result: ToolResult, context: EncodeContext): unknown {
  const { parts, plain } = result;
  const texts = parts.map(({ kind }) => (kind.case === "text" ? kind.value.text : undefined));
  const isText = texts.every((text) => text !== undefined);
  const isHinted =
    context.takesBreakpoints && parts.some(({ cacheHint }) => cacheHint !== undefined);
  if (isText && !isHinted && (plain || !context.isOwn)) {
    for (const part of parts) encodePart(part, Role.USER, context);
    return (result.isError ? "Error: " : "") + texts.join("\n");
  }
  const written = parts.map((part) => encodePart(part, Role.USER, context));
  return result.isError ? [{ type: "input_text", text: "Error: " }, ...written] : written;
}
