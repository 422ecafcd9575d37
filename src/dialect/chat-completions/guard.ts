/** Refuses bodies with members that must not use the key of the operator. */
import {
  checkModalities,
  checkSwitches,
  suspectTools,
  toolTypeCheck,
  type ToolUnit,
} from "../billed-features.ts";
import { checkFiles, checkModeration, checkServiceTier, checkTools, guardOf } from "../guard.ts";

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

const suspects = {
  members: ["moderation", "service_tier", "modalities", "audio", ...switches.map(([name]) => name)],
  nested: ["file_id"],
  areToolsSuspect: suspectTools(tools),
  audible: new Set(["audio"] as const),
};

const checkType = toolTypeCheck(tools);

/** The top-level members that the guard reads: each may stand only once, and under this name only. */
export const guardedChatMembers: readonly string[] = [...suspects.members, "tools"];

/** Checks a body of chat completions. */
export const guardChat = guardOf(suspects, (body, _options, { use }) => {
  checkModeration(body);
  checkServiceTier(body["service_tier"]);
  checkSwitches(body, switches, use);
  checkModalities(body["modalities"], "modalities", use);
  if (body["audio"] != null) use.use("audio_output", "audio", "audio");
  checkTools(body["tools"], "tools", { checkType, use });
  checkFiles(body["messages"], "messages");
});
