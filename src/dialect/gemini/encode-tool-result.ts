/** What tools answered, as function responses. */
import type { Part, ToolResult } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { type EncodeContext, refused } from "./context.ts";
import { encodeMedia } from "./encode-media.ts";
import { geminiToolName } from "./encode-tools.ts";
import type { GeminiBlob, GeminiPart } from "./wire.ts";

/** What writing a result needs beside it. */
export interface ToolResultContext {
  readonly context: EncodeContext;
  /** The names of the calls so far, by id. */
  readonly names: ReadonlyMap<string, string>;
}

/**
 * Writes a result: texts as its output, or its error; pictures within it where the model can read them
 * there, else behind it.
 *
 * @throws GatewayError INVALID_REQUEST where it belongs to no call
 */
export function encodeToolResult(
  result: ToolResult,
  { context, names }: ToolResultContext,
): GeminiPart[] {
  const { toolCallId: id, isError } = result;
  const name = names.get(id) ?? ownName(result);
  const texts: string[] = [];
  const within: GeminiBlob[] = [];
  const behind: GeminiPart[] = [];
  for (const part of result.parts) {
    const written = resultPart(part, context);
    if (written.text !== undefined) texts.push(written.text);
    else if (written.inlineData !== undefined && context.traits.mediaResponses) {
      within.push(written.inlineData);
    } else behind.push(written);
  }
  const response = { [isError ? "error" : "output"]: texts.join("\n") };
  const parts = within.map((inlineData) => ({ inlineData }));
  const functionResponse = {
    ...(id && { id }),
    name,
    response,
    ...(parts.length > 0 && { parts }),
  };
  return [{ functionResponse }, ...behind];
}

/** The name that the result itself tells. */
function ownName({ name, toolCallId }: ToolResult): string {
  if (name !== "") return geminiToolName({ name, namespace: "" });
  throw refused(`the result for "${toolCallId}" belongs to no call of a tool before it`);
}

function resultPart({ kind, cacheHint, extras }: Part, context: EncodeContext): GeminiPart {
  if (cacheHint !== undefined) context.drop("cache_hint");
  context.extras(extras);
  if (kind.case === "text" || kind.case === "refusal") return { text: kind.value.text };
  if (kind.case === "media") return encodeMedia(kind.value, context);
  const what = kind.case === "opaque" ? kind.value.type : "(none)";
  throw refused(`"${what}" in a tool's result means nothing to this model's vendor: leave it out`);
}
