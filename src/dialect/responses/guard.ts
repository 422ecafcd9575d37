/** Refuses bodies with members that must not use the key of the operator. */
import {
  checkModalities,
  checkPromptCache,
  checkVendorMembers,
  type FeatureUse,
  readCallLimit,
  refuseUnknown,
  suspectTools,
  toolTypeCheck,
  vendorMembers,
} from "../features/billed-features.ts";
import {
  checkFiles,
  checkModeration,
  checkServiceTier,
  checkTools,
  guardOf,
  type GuardedBody,
  refuseStored,
} from "../features/guard.ts";
import { namesToCheck } from "../features/member-class.ts";
import { responsesMembers, responsesTools } from "./members.ts";
import { invalid } from "../../core/validation.ts";
import { ObjectScan } from "../../wire/json/scan.ts";
import { isRecord, type JsonRecord, recordAt } from "../../wire/json/value.ts";

const suspects = {
  members: [
    ...namesToCheck(responsesMembers).filter((name) => name !== "previous_response_id"),
    // Of vendors that speak the style.
    ...["modalities", "audio", ...vendorMembers],
  ],
  nested: [
    "comparison_response_id",
    "container",
    "container_id",
    "file_id",
    "file_ids",
    "ttl",
    "vector_store_ids",
  ],
  areToolsSuspect: suspectTools(responsesTools),
  audible: new Set(["audio"] as const),
};

/** The check of tools of a request with one limit for all calls. */
function typeCheck(limit: number | undefined) {
  const checkBilled = toolTypeCheck(responsesTools, () => limit, foundTokensOf);
  /** A shell costs money if the vendor runs it. */
  return (tool: JsonRecord, path: string, use: FeatureUse): void => {
    const isLocal = recordAt(tool, "environment")?.["type"] === "local";
    if (tool["type"] !== "shell" || !isLocal) checkBilled(tool, path, use);
  };
}

/**
 * Number of results of a file search without a limit in the request, and the maximum tokens of one
 * result without a limit in its store.
 */
const fileSearch = { results: 20, tokensPerResult: 800 };

function foundTokensOf(tool: JsonRecord, path: string): number | undefined {
  if (tool["type"] !== "file_search") return undefined;
  const results = readCallLimit(tool["max_num_results"], `${path}.max_num_results`);
  return (results ?? fileSearch.results) * fileSearch.tokensPerResult;
}

const limitName = "max_tool_calls";

/** Sets the vendor's maximum number of calls, if the request has none. */
function limitCalls({ bytes, use }: GuardedBody): void {
  const scan = new ObjectScan().scan(bytes, 0, bytes.length);
  const member = scan.find(limitName);
  const calls = String(use.maxToolCalls);
  if (member >= 0) {
    use.edit({ start: scan.start(member), end: scan.end(member), text: calls });
    return;
  }
  const start = bytes.indexOf("{") + 1;
  use.edit({ start, end: start, text: `"${limitName}":${calls},` });
}

const send = 'send the items in "input"';

/** Top-level members that the guard reads. Each may appear only once, and only under this name. */
export const guardedResponsesMembers: readonly string[] = [
  ...suspects.members,
  ...["tools", limitName],
];

/** Checks a body of responses. */
export const guardResponses = guardOf(suspects, (body, { isVerified }, found) => {
  const { use } = found;
  if (body["conversation"] != null) throw refuseStored("conversation", send);
  if (body["prompt"] != null) throw refuseStored("prompt", 'send "instructions" and "input"');
  checkModeration(body);
  checkServiceTier(body["service_tier"], use);
  const cache = recordAt(body, "prompt_cache_options") ?? {};
  if (cache["comparison_response_id"] != null) {
    throw refuseStored("prompt_cache_options.comparison_response_id", "leave it out");
  }
  refuseAgents(body);
  refuseAccess(body);
  checkPromptCache(body, "input", use);
  checkVendorMembers(body, use);
  checkModalities(body["modalities"], "modalities", use);
  if (body["audio"] != null) use.use("audio_output", "audio", "audio");
  const limit = readCallLimit(body[limitName], limitName);
  const check = { checkType: typeCheck(limit), use };
  checkTools(body["tools"], "tools", check);
  const input: readonly unknown[] = Array.isArray(body["input"]) ? body["input"] : [];
  for (const [at, item] of input.entries()) {
    if (isRecord(item)) checkTools(item["tools"], `input[${at}].tools`, check);
  }
  checkFiles(input, "input");
  if (!isVerified) refuseReferences(body, input);
  if (limit === undefined && (use.features?.toolInputTokens ?? 0) > 0) limitCalls(found);
});

/** Refuses agents that the vendor starts: neither their number nor their depth has a limit. */
function refuseAgents(body: JsonRecord): void {
  const { multi_agent: agents } = body;
  if (agents == null || (isRecord(agents) && agents["enabled"] === false)) return;
  throw refuseUnknown("multi_agent", "agents that the vendor runs");
}

/** Refuses access for which the vendor has vetted the operator, and not the caller. */
function refuseAccess(body: JsonRecord): void {
  const { access_programs: programs } = body;
  for (const [name, level] of Object.entries(isRecord(programs) ? programs : {})) {
    if (level == null || level === "standard") continue;
    const path = `access_programs.${name}`;
    throw invalid(
      path,
      `"${path}" uses an access that the vendor gave the operator: send "standard", or leave it out`,
    );
  }
}

function refuseReferences(body: JsonRecord, input: readonly unknown[]): void {
  if (body["previous_response_id"] != null) throw refuseStored("previous_response_id", send);
  for (const [at, item] of input.entries()) {
    if (isReference(item)) throw refuseStored(`input[${at}].id`, send);
  }
}

/** Whether an item of the input only names one. A reference may leave out its type. */
export function isReference(item: unknown): item is JsonRecord & { readonly id: string } {
  if (!isRecord(item) || typeof item["id"] !== "string") return false;
  const type = item["type"] ?? (item["role"] == null ? "item_reference" : "message");
  return type === "item_reference";
}
