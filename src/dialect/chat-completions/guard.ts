/** Refuses bodies with members that must not use the key of the operator. */
import {
  checkCacheLife,
  checkModalities,
  checkPromptCache,
  checkVendorMembers,
  type FeatureUse,
  refuseUnknown,
  suspectTools,
  toolTypeCheck,
  vendorMembers,
} from "../features/billed-features.ts";
import {
  checkFiles,
  checkModeration,
  checkServiceTier,
  checkSpeed,
  checkTools,
  guardOf,
  refuseStored,
} from "../features/guard.ts";
import { isRecord, type JsonRecord, recordAt } from "../../wire/json/value.ts";
import { namesToCheck } from "../features/member-class.ts";
import { chatMembers, chatTools } from "./members.ts";
import { invalid } from "../../core/validation.ts";

/**
 * The members of a function, also without the level that this style has between. Others are tools
 * of vendors, as `googleSearch`.
 */
const functionMembers: ReadonlySet<string> = new Set([
  ...["type", "function", "custom", "cache_control"],
  ...["name", "description", "parameters", "strict"],
]);

const isSuspectType = suspectTools(chatTools);

const suspects = {
  members: [
    ...namesToCheck(chatMembers),
    // Of vendors that speak the style.
    ...["speed", "inference_geo", "extra_body", ...vendorMembers],
  ],
  nested: ["file_id", "ttl"],
  areToolsSuspect: (json: string) => isSuspectType(json) || hasForeignTool(json),
  audible: new Set(["audio"] as const),
};

const checkType = toolTypeCheck(chatTools);

/** Top-level members that the guard reads. Each may appear only once, and only under this name. */
export const guardedChatMembers: readonly string[] = [...suspects.members, "tools"];

/** Whether a tool has members that only vendors' own tools have. */
function hasForeignTool(json: string): boolean {
  try {
    const offered: unknown = JSON.parse(json);
    return Array.isArray(offered) && offered.some((tool) => foreignMember(tool) !== undefined);
  } catch {
    // The vendor refuses it.
    return true;
  }
}

function foreignMember(tool: unknown): string | undefined {
  if (!isRecord(tool)) return undefined;
  const { type } = tool;
  if (type != null && type !== "function" && type !== "custom") return undefined;
  return Object.keys(tool).find((name) => !functionMembers.has(name));
}

/** Refuses tools that only some vendors run. */
function refuseForeignTools({ tools: offered }: JsonRecord): void {
  if (!Array.isArray(offered)) return;
  for (const [at, tool] of offered.entries()) {
    const name = foreignMember(tool);
    if (name !== undefined) throw refuseUnknown(`tools[${at}].${name}`, `the tool "${name}"`);
  }
}

/**
 * Members that the gateway reads from the body alone. A vendor that prefers `extra_body` would act
 * differently.
 */
const decisive = [
  ...["model", "models", "messages", "stream", "stream_options"],
  ...["max_tokens", "max_completion_tokens", "n", "best_of"],
] as const;

const decisiveNames: ReadonlySet<string> = new Set([...decisive, ...guardedChatMembers]);

/**
 * Refuses members that a vendor must not find in `extra_body`, because it treats them as members of
 * the body.
 */
function checkExtra(extra: JsonRecord, use: FeatureUse): void {
  for (const name of Object.keys(extra)) {
    const meant = name.toLowerCase();
    if (meant === name || !decisiveNames.has(meant)) continue;
    const path = `extra_body.${name}`;
    throw invalid(path, `"${path}" is not known; did you mean "${meant}"?`);
  }
  for (const name of decisive) {
    const path = `extra_body.${name}`;
    if (extra[name] != null) throw invalid(path, `"${path}" is not served: send "${name}" itself`);
  }
  // A cache of Google belongs to its creator.
  const path = "extra_body.google.cached_content";
  if (recordAt(extra, "google")?.["cached_content"] != null)
    throw refuseStored(path, "leave it out");
  checkMembers(extra, use);
}

/** Checks a body of chat completions. */
export const guardChat = guardOf(suspects, (body, _options, { use }) => checkMembers(body, use));

function checkMembers(body: JsonRecord, use: FeatureUse): void {
  checkModeration(body);
  checkServiceTier(body["service_tier"], use);
  checkVendorMembers(body, use);
  checkPromptCache(body, "messages", use);
  checkModalities(body["modalities"], "modalities", use);
  const { audio } = body;
  if (audio != null) use.use("audio_output", "audio", "audio");
  if (isRecord(audio) && isRecord(audio["voice"])) {
    throw refuseStored("audio.voice", "send the name of a voice");
  }
  checkTools(body["tools"], "tools", { checkType, use });
  refuseForeignTools(body);
  checkSpeed(body, use);
  if (isRecord(body["extra_body"])) checkExtra(body["extra_body"], use);
  // The style's usage does not show which prompts were cached for longer.
  for (const name of ["tools", "messages"]) checkCacheLife(body[name], name, ["5m"]);
  checkFiles(body["messages"], "messages");
}
