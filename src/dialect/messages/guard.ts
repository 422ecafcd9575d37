/** Refuses bodies with members that must not use the key of the operator. */
import { checkCacheLife, refuseUnknown, suspectTools, toolTypeCheck } from "../billed-features.ts";
import {
  checkContainer,
  checkFiles,
  checkServiceTier,
  checkTools,
  guardOf,
  refuseHigherPrice,
  refuseModel,
  unsupportedThread,
} from "../guard.ts";
import type { JsonRecord } from "../json/value.ts";

const tools = {
  // The caller runs all of these but the search among its own tools, which costs tokens only.
  free: [
    "custom",
    "(?:bash|text_editor|memory|computer)_\\d+",
    "tool_search_tool_(?:regex|bm25)(?:_\\d+)?",
  ],
  billed: [
    [/^web_search_/, "tools.web_search"],
    [/^web_fetch_/, "tools.web_fetch"],
    [/^code_execution_/, "tools.code_execution"],
  ],
} as const;

const suspects = {
  members: [
    "fallbacks",
    "container",
    "thread",
    "speed",
    "mcp_servers",
    "inference_geo",
    "service_tier",
  ],
  nested: ["container", "file_id", "ttl"],
  areToolsSuspect: suspectTools(tools),
};

const checkType = toolTypeCheck(tools);

/** Checks a body of messages. */
export const guardMessages = guardOf(suspects, (body, { hasPrice }) => {
  if (body["thread"] != null) throw unsupportedThread();
  if (body["fallbacks"] != null) throw refuseModel("fallbacks");
  checkService(body);
  checkContainer(body["container"], "container");
  checkTools(body["tools"], "tools", checkType);
  checkFiles(body["messages"], "messages");
  const covered = hasPrice?.("cache_write_1h") === true ? ["5m", "1h"] : ["5m"];
  for (const name of ["tools", "system", "messages"]) checkCacheLife(body[name], name, covered);
  checkCacheLife({ cache_control: body["cache_control"] }, "", covered);
});

/** Refuses where and how a request is to be served, if that costs more. */
function checkService(body: JsonRecord): void {
  const { speed, inference_geo: place, mcp_servers: servers } = body;
  checkServiceTier(body["service_tier"]);
  if (speed != null && speed !== "standard") {
    throw refuseHigherPrice("speed", 'send "standard", or leave it out');
  }
  if (place != null && place !== "global") {
    throw refuseHigherPrice("inference_geo", 'send "global", or leave it out');
  }
  const isNone = Array.isArray(servers) && servers.length === 0;
  if (servers != null && !isNone) throw refuseUnknown("mcp_servers", "tools of other servers");
}
