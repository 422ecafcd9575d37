/** Only responses: its reply repeats the request. Writes the response object. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { Role, type Extra } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { ReplyOptions } from "../codec.ts";
import type { JsonRecord } from "../json/value.ts";
import { EncodeContext } from "./encode-context.ts";
import { encodeReasoning, encodeText } from "./encode-settings.ts";
import { encodeTooling } from "./encode-tools.ts";
import { usageJson } from "./usage.ts";

/** What a response says of itself beside what was asked for. */
interface ResponseState {
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

/** What is known of a response from its first moment. */
interface PendingResponse {
  readonly id: string;
  /** The public name of the model. */
  readonly model: string;
  /** In seconds since 1970. */
  readonly created: number;
}

/** The response to a request in the background, as it is answered at once. */
export function pendingResponse(
  request: JsonRecord,
  { id, model, created }: PendingResponse,
): JsonRecord {
  const { reasoning, text } = request as Readonly<Record<string, object | undefined>>;
  const given = (name: string, other: unknown): unknown => request[name] ?? other;
  return {
    id,
    object: "response",
    created_at: created,
    status: "queued",
    background: true,
    error: null,
    incomplete_details: null,
    instructions: given("instructions", null),
    max_output_tokens: given("max_output_tokens", null),
    max_tool_calls: given("max_tool_calls", null),
    metadata: given("metadata", {}),
    model,
    output: [],
    parallel_tool_calls: given("parallel_tool_calls", true),
    previous_response_id: given("previous_response_id", null),
    prompt_cache_key: given("prompt_cache_key", null),
    reasoning: { effort: null, summary: null, ...reasoning },
    safety_identifier: given("safety_identifier", null),
    service_tier: given("service_tier", "auto"),
    store: true,
    temperature: given("temperature", 1),
    text: { format: { type: "text" }, ...text },
    tool_choice: given("tool_choice", "auto"),
    tools: given("tools", []),
    top_logprobs: given("top_logprobs", 0),
    top_p: given("top_p", 1),
    truncation: given("truncation", "disabled"),
    usage: null,
  };
}

/** How a response stands that has no output. */
interface ResponseStatus {
  readonly status: string;
  /** Why it failed. Absent: it has not. */
  readonly error?: { readonly code: string; readonly message: string };
}

/** The same response as it stands now. */
export function withStatus(begun: JsonRecord, { status, error }: ResponseStatus): JsonRecord {
  return { ...begun, status, error: error ?? null };
}

/** What was made for a request in the background, as the response that was promised. */
export function finishedResponse(begun: JsonRecord, made: JsonRecord): JsonRecord {
  const { id, created_at, background, previous_response_id, model } = begun;
  return { ...made, id, created_at, background, previous_response_id, model };
}
