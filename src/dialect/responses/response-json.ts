/** The response object, which repeats what was asked for. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { type Extra, Role } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { ReplyOptions } from "../codec.ts";
import type { JsonRecord } from "../json.ts";
import { EncodeContext } from "./encode-context.ts";
import { encodeReasoning, encodeText } from "./encode-settings.ts";
import { encodeTooling } from "./encode-tools.ts";
import { usageJson } from "./usage.ts";

/** What a response says of itself beside what was asked for. */
export interface ResponseState {
  readonly status: "in_progress" | "completed" | "incomplete";
  /** Why it is incomplete. `null`: it is not. */
  readonly details: JsonRecord | null;
  /** The items, each as JSON. */
  readonly output: readonly string[];
  readonly usage: Usage | undefined;
  /** Empty: not told. */
  readonly serviceTier: string;
}

/** Writes the response objects of one call. What they have in common is written once. */
export class ResponseWriter {
  readonly #head: string;
  readonly #settings: string;
  readonly #serviceTier: string;

  /** @param created when the vendor began, in seconds since 1970; 0: it did not tell */
  constructor(options: ReplyOptions, created: bigint) {
    const { callId, generation, model } = options;
    const begun = created === 0n ? options.created : Number(created);
    this.#head = `{"id":"${responseId(callId)}","object":"response","created_at":${begun},`;
    this.#settings = JSON.stringify(settingsOf(generation, model)).slice(1, -1);
    this.#serviceTier = generation.serviceTier;
  }

  /** The response as JSON. */
  write({ status, details, output, usage, serviceTier }: ResponseState): string {
    const tier = tierWord(serviceTier || this.#serviceTier);
    return (
      `${this.#head}"status":"${status}","error":null,` +
      `"incomplete_details":${JSON.stringify(details)},${this.#settings},` +
      `"service_tier":${JSON.stringify(tier)},"output":[${output.join(",")}],` +
      `"usage":${JSON.stringify(usageJson(usage))}}`
    );
  }
}

/** The id of the response to a call. */
export function responseId(callId: string): string {
  return `resp_${callId}`;
}

/** The word of this style where it differs. */
function tierWord(tier: string): string {
  return tier === "" || tier === "standard" || tier === "standard_only" ? "default" : tier;
}

function settingsOf(generation: Generation, model: string): JsonRecord {
  const context = new EncodeContext(Dialect.RESPONSES);
  const { conversation, maxOutputTokens, temperature, topP, endUser, cacheKey } = generation;
  const tooling = conversation === undefined ? {} : encodeTooling(conversation, context);
  const reasoning = generation.reasoning && encodeReasoning(generation.reasoning);
  return {
    model,
    background: false,
    instructions: instructionsOf(generation) ?? null,
    max_output_tokens: maxOutputTokens ?? null,
    max_tool_calls: extra(generation, "max_tool_calls", null),
    metadata: extra(generation, "metadata", {}),
    parallel_tool_calls: true,
    previous_response_id: extra(generation, "previous_response_id", null),
    prompt_cache_key: cacheKey || null,
    reasoning: { effort: null, summary: null, ...reasoning },
    safety_identifier: endUser || null,
    store: extra(generation, "store", true),
    temperature: temperature ?? 1,
    text: { format: { type: "text" }, ...encodeText(generation, context) },
    tool_choice: "auto",
    tools: [],
    top_logprobs: extra(generation, "top_logprobs", 0),
    top_p: topP ?? 1,
    truncation: extra(generation, "truncation", "disabled"),
    ...tooling,
  };
}

function instructionsOf({ conversation }: Generation): string | undefined {
  const first = conversation?.turns[0];
  if (first?.role !== Role.SYSTEM || first.roleWord !== "instructions") return undefined;
  const kind = first.parts[0]?.kind;
  return kind?.case === "text" ? kind.value.text : undefined;
}

function extra({ extras }: { readonly extras: readonly Extra[] }, name: string, other: unknown) {
  const found = extras.find((each) => each.name === name);
  return found === undefined ? other : (JSON.parse(found.json) as unknown);
}
