/** Refuses bodies with members that must not use the key of the operator. */
import {
  checkModalities,
  checkSwitches,
  refuseUnpriced,
  suspectTools,
  toolTypeCheck,
  type FeatureUnit,
} from "../billed-features.ts";
import { checkFiles, checkModeration, checkServiceTier, checkTools, guardOf } from "../guard.ts";

const tools = {
  free: ["function", "custom"],
  billed: [[/web_search/, "tools.web_search"]],
} as const;

/** Searches of OpenAI, and of vendors that speak its style. */
const switches: readonly (readonly [string, FeatureUnit])[] = [
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
};

const checkType = toolTypeCheck(tools);

/** Checks a body of chat completions. */
export const guardChat = guardOf(suspects, (body) => {
  checkModeration(body);
  checkServiceTier(body["service_tier"]);
  checkSwitches(body, switches);
  checkModalities(body["modalities"], "modalities");
  if (body["audio"] != null) throw refuseUnpriced("audio", "audio", "audio_output");
  checkTools(body["tools"], "tools", checkType);
  checkFiles(body["messages"], "messages");
});
