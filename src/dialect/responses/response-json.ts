/** Only responses: its reply repeats the request. Writes the response object. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { Role, type Extra } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { type Usage, UsageSchema } from "../../../gen/uas/type/v1/usage_pb.ts";
import { asBuffer } from "../../core/bytes.ts";
import type { ReplyOptions } from "../codec.ts";
import { JsonText, writeJson } from "../../wire/json/json-tree.ts";
import {
  changeMembers,
  listElements,
  memberOf,
  objectMembers,
  writeMembers,
} from "../../wire/json/source.ts";
import { type JsonRecord, parseRecord, textAt } from "../../wire/json/value.ts";
import { EncodeContext } from "./encode-context.ts";
import { encodeReasoning, encodeText } from "./encode-settings.ts";
import { encodeTooling } from "./encode-tools.ts";
import { usageJson } from "./usage.ts";

/** State of a response, besides the request. */
interface ResponseState {
  readonly status: "in_progress" | "completed" | "incomplete";
  /** The reason it is incomplete; `null` for none. */
  readonly details: JsonRecord | null;
  /** The items as JSON texts. */
  readonly output: readonly string[];
  readonly usage: Usage | undefined;
  /** Empty if it was not reported. */
  readonly serviceTier: string;
}

/** Writes the response objects of one call; the common part is written once. */
export class ResponseWriter {
  readonly #head: string;
  readonly #begun: number;
  readonly #settings: string;
  readonly #serviceTier: string;
  readonly #now: () => number;

  /** @param created start in seconds since 1970; 0 if the vendor did not report it */
  constructor(options: ReplyOptions, created: bigint) {
    const { callId, generation, model, now } = options;
    this.#now = now;
    this.#begun = created === 0n ? options.created : Number(created);
    this.#head = `{"id":"${responseId(callId)}","object":"response","created_at":${this.#begun},`;
    this.#settings = writeJson(settingsOf(generation, model)).slice(1, -1);
    this.#serviceTier = generation.serviceTier;
  }

  /** The response as JSON. */
  write({ status, details, output, usage, serviceTier }: ResponseState): string {
    const tier = tierWord(serviceTier || this.#serviceTier);
    // The vendor's clock may be ahead of ours.
    const completedAt = status === "completed" ? Math.max(this.#begun, this.#now()) : null;
    return (
      `${this.#head}"completed_at":${completedAt},"status":"${status}","error":null,` +
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

/** This style's name of a tier. */
function tierWord(tier: string): string {
  return tier === "" || tier === "standard" || tier === "standard_only" ? "default" : tier;
}

function settingsOf(generation: Generation, model: string): JsonRecord {
  const context = new EncodeContext(Dialect.RESPONSES);
  const { conversation, maxOutputTokens, temperature, topP, endUser, cacheKey } = generation;
  const { presencePenalty, frequencyPenalty } = generation;
  const { tools = [], ...choice } =
    conversation === undefined ? {} : encodeTooling(conversation, context);
  const reasoning = generation.reasoning && encodeReasoning(generation.reasoning);
  return {
    model,
    background: false,
    frequency_penalty: frequencyPenalty ?? 0,
    instructions: instructionsOf(generation) ?? null,
    max_output_tokens: maxOutputTokens ?? null,
    max_tool_calls: extra(generation, "max_tool_calls", null),
    metadata: extra(generation, "metadata", {}),
    parallel_tool_calls: true,
    presence_penalty: presencePenalty ?? 0,
    previous_response_id: extra(generation, "previous_response_id", null),
    prompt_cache_key: cacheKey || null,
    reasoning: { effort: null, summary: null, ...reasoning },
    safety_identifier: endUser || null,
    store: extra(generation, "store", true),
    temperature: temperature ?? 1,
    text: { format: { type: "text" }, ...encodeText(generation, context) },
    tool_choice: "auto",
    tools: shownTools(writeJson(tools)),
    top_logprobs: extra(generation, "top_logprobs", 0),
    top_p: topP ?? 1,
    truncation: extra(generation, "truncation", "disabled"),
    ...choice,
  };
}

/**
 * Tools as a response repeats them: members that a request may leave out have their defaults.
 * @param tools JSON
 */
function shownTools(tools: string): JsonText {
  return new JsonText(`[${listElements(tools).map(shownTool).join(",")}]`);
}

function shownTool(tool: string): string {
  const type = parseRecord(tool)?.["type"];
  if (type === "namespace") {
    return changeMembers(tool, { tools: shownTools(memberOf(tool, "tools")).text });
  }
  if (type !== "function") return tool;
  return withDefaults({ description: "null", parameters: "null", strict: "false" }, tool);
}

/**
 * Returns the members of a JSON object, with defaults for missing ones. @param given empty if there
 * are none
 */
function withDefaults(defaults: Readonly<Record<string, string>>, given: string): string {
  const names = new Set(objectMembers(given).map(({ name }) => name));
  const lacked = Object.entries(defaults).filter(([name]) => !names.has(name));
  return writeMembers([...lacked.map(([name, json]) => ({ name, json })), ...objectMembers(given)]);
}

function instructionsOf({ conversation }: Generation): string | undefined {
  const first = conversation?.turns[0];
  if (first?.role !== Role.SYSTEM || first.roleWord !== "instructions") return undefined;
  const kind = first.parts[0]?.kind;
  return kind?.case === "text" ? kind.value.text : undefined;
}

function extra({ extras }: { readonly extras: readonly Extra[] }, name: string, other: unknown) {
  const found = extras.find((each) => each.name === name);
  return found === undefined ? other : new JsonText(found.json);
}

/** The facts known at the start of a response. */
interface PendingResponse {
  readonly id: string;
  /** The public name of the model. */
  readonly model: string;
  /** In seconds since 1970. */
  readonly created: number;
}

/**
 * The immediate reply to a background request, as JSON.
 *
 * @param request JSON
 */
export function pendingResponse(request: string, { id, model, created }: PendingResponse): string {
  const members = new Map(objectMembers(request).map(({ name, json }) => [name, json]));
  const given = (name: string, other: unknown): unknown => {
    const json = members.get(name) ?? "null";
    return json === "null" ? other : new JsonText(json);
  };
  const completed = (name: string, defaults: Readonly<Record<string, string>>): JsonText =>
    new JsonText(withDefaults(defaults, members.get(name) ?? ""));
  return writeJson({
    id,
    object: "response",
    created_at: created,
    completed_at: null,
    status: "queued",
    background: true,
    error: null,
    frequency_penalty: given("frequency_penalty", 0),
    incomplete_details: null,
    instructions: given("instructions", null),
    max_output_tokens: given("max_output_tokens", null),
    max_tool_calls: given("max_tool_calls", null),
    metadata: given("metadata", {}),
    model,
    output: [],
    parallel_tool_calls: given("parallel_tool_calls", true),
    presence_penalty: given("presence_penalty", 0),
    previous_response_id: given("previous_response_id", null),
    prompt_cache_key: given("prompt_cache_key", null),
    reasoning: completed("reasoning", { effort: "null", summary: "null" }),
    safety_identifier: given("safety_identifier", null),
    service_tier: given("service_tier", "auto"),
    store: true,
    temperature: given("temperature", 1),
    text: completed("text", { format: '{"type":"text"}' }),
    tool_choice: given("tool_choice", "auto"),
    tools: shownTools(members.get("tools") ?? ""),
    top_logprobs: given("top_logprobs", 0),
    top_p: given("top_p", 1),
    truncation: given("truncation", "disabled"),
    usage: null,
  });
}

/** The state of a response without output. */
interface ResponseStatus {
  readonly status: string;
  /** The failure. Absent if there is none. */
  readonly error?: { readonly code: string; readonly message: string };
}

/**
 * A request that is only prepared for the next one, without calling a model: as it begins, and as
 * it ends. As JSON.
 */
export function preparedResponse(
  body: Uint8Array,
  { id, created }: Pick<PendingResponse, "id" | "created">,
): { readonly created: string; readonly completed: string } {
  const request = asBuffer(body).toString("utf8");
  const model = textAt(parseRecord(request) ?? {}, "model");
  const store = memberOf(request, "store");
  const begun = changeMembers(pendingResponse(request, { id, model, created }), {
    background: "false",
    store: store === "" || store === "null" ? "true" : store,
  });
  return {
    created: changeMembers(begun, { status: '"in_progress"' }),
    completed: changeMembers(begun, {
      status: '"completed"',
      completed_at: String(created),
      usage: JSON.stringify(usageJson(noUsage)),
    }),
  };
}

const noUsage = create(UsageSchema);

/** Updates the status of a pending response. @param begun JSON */
export function withStatus(begun: string, { status, error }: ResponseStatus): string {
  return changeMembers(begun, {
    status: JSON.stringify(status),
    error: JSON.stringify(error ?? null),
  });
}

/** The members that a complete response has from its beginning. */
const keptMembers = ["id", "created_at", "background", "previous_response_id", "model"];

/**
 * Returns the completed response of a background request, under the ID of the pending one. Both are
 * JSON.
 *
 * @param usage replaces the vendor's figures. Default: they stay
 */
export function finishedResponse(begun: string, made: string, usage?: Usage): string {
  const known = new Map(objectMembers(begun).map(({ name, json }) => [name, json]));
  const kept = Object.fromEntries(keptMembers.map((name) => [name, known.get(name)]));
  return changeMembers(made, {
    ...kept,
    ...(usage && { usage: JSON.stringify(usageJson(usage)) }),
  });
}
