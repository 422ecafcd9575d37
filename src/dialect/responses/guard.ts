/** See {@link Guard}. */
import {
  checkFiles,
  checkModeration,
  checkServiceTier,
  checkTools,
  guardOf,
  refuseStored,
} from "../guard.ts";
import { isRecord, type JsonRecord, recordAt } from "../json/value.ts";

const suspects = {
  members: ["conversation", "prompt", "moderation", "service_tier"],
  nested: [
    "comparison_response_id",
    "container",
    "container_id",
    "file_id",
    "file_ids",
    "vector_store_ids",
  ],
  tools: ["image_generation"],
};

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
  checkTools(body["tools"], "tools");
  const input: readonly unknown[] = Array.isArray(body["input"]) ? body["input"] : [];
  for (const [at, item] of input.entries()) {
    if (isRecord(item)) checkTools(item["tools"], `input[${at}].tools`);
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
