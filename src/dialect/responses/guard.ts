/** Refuses bodies with members that must not use the key of the operator. */
import {
  checkModalities,
  refuseUnpriced,
  suspectTools,
  toolTypeCheck,
} from "../billed-features.ts";
import {
  checkFiles,
  checkModeration,
  checkServiceTier,
  checkTools,
  guardOf,
  refuseStored,
} from "../guard.ts";
import { isRecord, type JsonRecord, recordAt } from "../json/value.ts";

const tools = {
  // The caller runs all of these.
  free: [
    "function",
    "custom",
    "namespace",
    "local_shell",
    "apply_patch",
    "tool_search",
    "computer(?:_use)?(?:_preview)?(?:_\\d+)*",
  ],
  billed: [
    [/^web_search/, "tools.web_search"],
    [/^code_interpreter$|^shell$/, "tools.code_execution"],
    [/^file_search$/, "tools.file_search"],
  ],
} as const;

const suspects = {
  members: ["conversation", "prompt", "moderation", "service_tier", "modalities", "audio"],
  nested: [
    "comparison_response_id",
    "container",
    "container_id",
    "file_id",
    "file_ids",
    "vector_store_ids",
  ],
  areToolsSuspect: suspectTools(tools),
};

const checkBilled = toolTypeCheck(tools);

/** A shell costs money where the vendor runs it. */
function checkType(tool: JsonRecord, path: string): void {
  const isLocal = recordAt(tool, "environment")?.["type"] === "local";
  if (tool["type"] !== "shell" || !isLocal) checkBilled(tool, path);
}

const send = 'send the items in "input"';

/** Checks a body of responses. */
export const guardResponses = guardOf(suspects, (body, { isVerified }) => {
  if (body["conversation"] != null) throw refuseStored("conversation", send);
  if (body["prompt"] != null) throw refuseStored("prompt", 'send "instructions" and "input"');
  checkModeration(body);
  checkServiceTier(body["service_tier"]);
  const cache = recordAt(body, "prompt_cache_options") ?? {};
  if (cache["comparison_response_id"] != null) {
    throw refuseStored("prompt_cache_options.comparison_response_id", "leave it out");
  }
  checkModalities(body["modalities"], "modalities");
  if (body["audio"] != null) throw refuseUnpriced("audio", "audio", "audio_output");
  checkTools(body["tools"], "tools", checkType);
  const input: readonly unknown[] = Array.isArray(body["input"]) ? body["input"] : [];
  for (const [at, item] of input.entries()) {
    if (isRecord(item)) checkTools(item["tools"], `input[${at}].tools`, checkType);
  }
  checkFiles(input, "input");
  if (!isVerified) refuseReferences(body, input);
});

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
