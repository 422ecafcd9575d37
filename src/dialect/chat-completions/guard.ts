/** Refuses bodies with members that must not use the key of the operator. */
import {
  checkCacheLife,
  checkModalities,
  checkSwitches,
  refuseUnknown,
  suspectTools,
  toolTypeCheck,
  type ToolUnit,
} from "../billed-features.ts";
import {
  checkFiles,
  checkModeration,
  checkServiceTier,
  checkSpeed,
  checkTools,
  guardOf,
} from "../guard.ts";
import { isRecord, type JsonRecord } from "../json/value.ts";

const tools = {
  free: ["function", "custom"],
  billed: [[/web_search/, "tools.web_search"]],
} as const;

/** Searches of OpenAI, and of vendors that speak its style. */
const switches: readonly (readonly [string, ToolUnit])[] = [
  ["web_search_options", "tools.web_search"],
  ["search_parameters", "tools.web_search"],
  ["enable_search", "tools.web_search"],
  ["plugins", "tools.web_search"],
  ["enable_code_interpreter", "tools.code_execution"],
];

/** Members with which vendors of this style run tools or models of their own. */
const foreign = ["agent_id", "compound_custom"] as const;

/** The members of a function, also without the level that this style has between. Others are tools of vendors, as
 * `googleSearch`. */
const functionMembers: ReadonlySet<string> = new Set([
  ...["type", "function", "custom", "cache_control"],
  ...["name", "description", "parameters", "strict"],
]);

const isSuspectType = suspectTools(tools);

const suspects = {
  members: [
    ...["moderation", "service_tier", "modalities", "audio", "speed", "inference_geo"],
    ...["extra_body", ...foreign, ...switches.map(([name]) => name)],
  ],
  nested: ["file_id", "ttl"],
  areToolsSuspect: (json: string) => isSuspectType(json) || hasForeignTool(json),
  audible: new Set(["audio"] as const),
};

const checkType = toolTypeCheck(tools);

/** The top-level members that the guard reads: each may stand only once, and under this name only. */
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

/** Refuses what vendors run or bill in ways of their own. */
function refuseForeign(body: JsonRecord): void {
  for (const name of foreign) {
    if (body[name] != null) throw refuseUnknown(name, `"${name}"`);
  }
  const { tools: offered } = body;
  if (!Array.isArray(offered)) return;
  for (const [at, tool] of offered.entries()) {
    const name = foreignMember(tool);
    if (name !== undefined) throw refuseUnknown(`tools[${at}].${name}`, `the tool "${name}"`);
  }
}

/** Checks a body of chat completions. */
export const guardChat = guardOf(suspects, (body, _options, { use }) => {
  checkModeration(body);
  checkServiceTier(body["service_tier"]);
  checkSwitches(body, switches, use);
  checkModalities(body["modalities"], "modalities", use);
  if (body["audio"] != null) use.use("audio_output", "audio", "audio");
  checkTools(body["tools"], "tools", { checkType, use });
  refuseForeign(body);
  checkSpeed(body);
  // Some vendors take its members for members of the body.
  if (isRecord(body["extra_body"])) {
    checkSwitches(body["extra_body"], switches, use);
    refuseForeign(body["extra_body"]);
  }
  // The style's usage does not tell which prompts were cached for longer.
  for (const name of ["tools", "messages"]) checkCacheLife(body[name], name, ["5m"]);
  checkFiles(body["messages"], "messages");
});
