/** Refuses bodies with members that must not use the key of the operator. */
import {
  checkCacheLife,
  checkVendorMembers,
  type FeatureUse,
  readCallLimit,
  refuseUnknown,
  suspectTools,
  toolTypeCheck,
  vendorMembers,
} from "../billed-features.ts";
import {
  checkContainer,
  checkFiles,
  checkServiceTier,
  checkSpeed,
  checkTools,
  guardOf,
  type GuardedBody,
  refuseModel,
  unsupportedThread,
} from "../guard.ts";
import { ObjectScan } from "../json/scan.ts";
import { isRecord, type JsonRecord, textAt } from "../json/value.ts";

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
    "inference_geo",
    "service_tier",
    "context_management",
    ...vendorMembers,
  ],
  nested: ["container", "file_id", "ttl"],
  areToolsSuspect: suspectTools(tools),
  audible: new Set<never>(),
};

const checkType = toolTypeCheck(tools, (tool, path) =>
  readCallLimit(tool["max_uses"], `${path}.max_uses`),
);

/** The tools whose calls the style can limit. */
const limited = /^web_(?:search|fetch)_/;

/** Tells the vendor the most calls of each tool, where the request does not. */
function limitCalls(offered: unknown, { bytes, use }: GuardedBody): void {
  if (!Array.isArray(offered)) return;
  const body = new ObjectScan().scan(bytes, 0, bytes.length);
  const places = body.elements("tools");
  const calls = String(use.maxToolCalls);
  for (const [index, tool] of offered.entries()) {
    const place = places[index];
    if (!isRecord(tool) || place === undefined || tool["max_uses"] != null) continue;
    if (!limited.test(textAt(tool, "type"))) continue;
    const scan = new ObjectScan().scan(bytes, place.start, place.end);
    const member = scan.find("max_uses");
    if (member >= 0) use.edit({ start: scan.start(member), end: scan.end(member), text: calls });
    else use.edit({ start: place.start + 1, end: place.start + 1, text: `"max_uses":${calls},` });
  }
}

/** The top-level members that the guard reads: each may stand only once, and under this name only. */
export const guardedMessagesMembers: readonly string[] = [...suspects.members, "tools"];

/** Checks a body of messages. */
export const guardMessages = guardOf(suspects, (body, _options, found) => {
  const { use } = found;
  if (body["thread"] != null) throw unsupportedThread();
  if (body["fallbacks"] != null) throw refuseModel("fallbacks");
  checkService(body, use);
  checkVendorMembers(body, use);
  refuseCompaction(body["context_management"]);
  checkContainer(body["container"], "container");
  checkTools(body["tools"], "tools", { checkType, use });
  checkFiles(body["messages"], "messages");
  const covered = use.hasPrice("cache_write_1h") ? ["5m", "1h"] : ["5m"];
  for (const name of ["tools", "system", "messages"]) checkCacheLife(body[name], name, covered);
  checkCacheLife({ cache_control: body["cache_control"] }, "", covered);
  limitCalls(body["tools"], found);
});

/** Refuses a summary of the conversation by the vendor: its tokens are billed, but not in the usage of the reply. */
function refuseCompaction(management: unknown): void {
  const edits = isRecord(management) ? management["edits"] : undefined;
  if (!Array.isArray(edits)) return;
  for (const [at, edit] of edits.entries()) {
    if (!isRecord(edit) || /^clear_/.test(textAt(edit, "type"))) continue;
    throw refuseUnknown(`context_management.edits[${at}].type`, "a change of the conversation");
  }
}

/** Refuses where and how a request is to be served, if that costs more. */
function checkService(body: JsonRecord, use: FeatureUse): void {
  const { mcp_servers: servers } = body;
  // The fast mode is asked for by another member.
  checkServiceTier(body["service_tier"], use, ["priority"]);
  checkSpeed(body, use);
  const isNone = Array.isArray(servers) && servers.length === 0;
  if (servers != null && !isNone) throw refuseUnknown("mcp_servers", "tools of other servers");
}
