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
} from "../features/billed-features.ts";
import {
  checkContainer,
  checkFiles,
  checkServiceTier,
  checkSpeed,
  checkTool,
  checkTools,
  guardOf,
  type GuardedBody,
  refuseLookalikes,
  refuseModel,
  refuseStored,
  type ToolCheck,
  unsupportedThread,
} from "../features/guard.ts";
import { namesToCheck } from "../features/member-class.ts";
import { messagesMembers, messagesTools } from "./members.ts";
import { invalid } from "../../core/validation.ts";
import { objectAt, ObjectScan } from "../../wire/json/scan.ts";
import { isRecord, type JsonRecord, textAt } from "../../wire/json/value.ts";

/**
 * Members that mean the header `anthropic-beta` to some vendors, whose betas are checked in the
 * header only.
 */
const bodyBetas = ["anthropic_beta", "betas"] as const;

const suspects = {
  members: [...namesToCheck(messagesMembers), ...vendorMembers],
  nested: ["container", "file_id", "ttl", "tool"],
  areToolsSuspect: suspectTools(messagesTools),
  audible: new Set<never>(),
};

const checkType = toolTypeCheck(messagesTools, (tool, path) =>
  readCallLimit(tool["max_uses"], `${path}.max_uses`),
);

/** The tools whose calls the style can limit. */
const limited = /^web_(?:search|fetch)_/;

/**
 * Sets the vendor's maximum number of calls of a tool. @param path position of the tool in the body
 */
function limitCalls(path: string, { bytes, use }: GuardedBody): void {
  const place = objectAt(bytes, path);
  if (place === undefined) return;
  const calls = String(use.maxToolCalls);
  const scan = new ObjectScan().scan(bytes, place.start, place.end);
  const member = scan.find("max_uses");
  if (member >= 0) use.edit({ start: scan.start(member), end: scan.end(member), text: calls });
  else use.edit({ start: place.start + 1, end: place.start + 1, text: `"max_uses":${calls},` });
}

/** Types of blocks that refer to a tool by name. */
const toolReference = /^(?:tool|mcp_tool|mcp_toolset)_reference$/;

/**
 * Checks tools that blocks of the conversation define, at any depth: a `tool_addition` defines them
 * during the conversation, a `compaction` repeats them. What a tool was called with is no
 * definition.
 */
function checkInlineTools(value: unknown, path: string, check: ToolCheck): void {
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries()) {
      if (typeof each === "object") checkInlineTools(each, `${path}[${at}]`, check);
    }
    return;
  }
  if (!isRecord(value)) return;
  refuseLookalikes(value, path);
  for (const [name, each] of Object.entries(value)) {
    if (name === "input" || typeof each !== "object") continue;
    const where = `${path}.${name}`;
    if (name === "tools") checkTools(each, where, check);
    else if (isRecord(each) && isDefinition(name, each)) checkTool(each, where, check);
    else checkInlineTools(each, where, check);
  }
}

function isDefinition(name: string, value: JsonRecord): boolean {
  if (name === "definition") return true;
  const type = textAt(value, "type");
  return name === "tool" && type !== "tool_definition" && !toolReference.test(type);
}

/** Top-level members that the guard reads. Each may appear only once, and only under this name. */
export const guardedMessagesMembers: readonly string[] = [...suspects.members, "tools"];

/** Checks a body of messages. */
export const guardMessages = guardOf(suspects, (body, _options, found) => {
  const { use } = found;
  if (body["thread"] != null) throw unsupportedThread();
  if (body["fallbacks"] != null) throw refuseModel("fallbacks");
  checkService(body, use);
  checkVendorMembers(body, use);
  refuseCompaction(body);
  refuseOperatorsOwn(body);
  refuseBodyBetas(body);
  checkContainer(body["container"], "container");
  const unlimited: string[] = [];
  const check: ToolCheck = {
    use,
    checkType: (tool, path) => {
      checkType(tool, path, use);
      if (tool["max_uses"] == null && limited.test(textAt(tool, "type"))) unlimited.push(path);
    },
  };
  checkTools(body["tools"], "tools", check);
  for (const name of ["system", "messages"]) checkInlineTools(body[name], name, check);
  checkFiles(body["messages"], "messages");
  const covered = use.hasPrice("cache_write_1h") ? ["5m", "1h"] : ["5m"];
  for (const name of ["tools", "system", "messages"]) checkCacheLife(body[name], name, covered);
  checkCacheLife({ cache_control: body["cache_control"] }, "", covered);
  for (const path of unlimited) limitCalls(path, found);
});

/**
 * Refuses a summary of the conversation by the vendor: its tokens are billed, but not in the usage
 * of the reply.
 */
function refuseCompaction(body: JsonRecord): void {
  const { context_management: management, compaction } = body;
  if (compaction != null) throw refuseUnknown("compaction", "a summary of the conversation");
  const edits = isRecord(management) ? management["edits"] : undefined;
  if (!Array.isArray(edits)) return;
  for (const [at, edit] of edits.entries()) {
    if (!isRecord(edit) || /^clear_/.test(textAt(edit, "type"))) continue;
    throw refuseUnknown(`context_management.edits[${at}].type`, "a change of the conversation");
  }
}

/**
 * Refuses what belongs to the operator's organization at the vendor: its customers, credits and
 * messages.
 */
function refuseOperatorsOwn(body: JsonRecord): void {
  const { diagnostics, resumption, billing_policy: policy, fallback_credit_token: token } = body;
  if (policy != null) {
    throw invalid(
      "billing_policy",
      '"billing_policy" names accounts at the vendor, and callers have none there: leave it out',
    );
  }
  if (token != null) throw refuseStored("fallback_credit_token", "leave it out");
  if (isRecord(diagnostics) && diagnostics["previous_message_id"] != null) {
    throw refuseStored("diagnostics.previous_message_id", "leave it out");
  }
  if (isRecord(resumption) && resumption["token"] != null) {
    throw refuseStored("resumption.token", "send the whole conversation");
  }
}

function refuseBodyBetas(body: JsonRecord): void {
  const name = bodyBetas.find((each) => body[each] != null);
  if (name !== undefined) {
    throw invalid(name, `"${name}" is not served in the body: send the header "anthropic-beta"`);
  }
}

/** Refuses if and how a request is to be served, if that costs more. */
function checkService(body: JsonRecord, use: FeatureUse): void {
  const { mcp_servers: servers } = body;
  // Another member requests the fast mode.
  checkServiceTier(body["service_tier"], use, ["priority"]);
  checkSpeed(body, use);
  const isNone = Array.isArray(servers) && servers.length === 0;
  if (servers != null && !isNone) throw refuseUnknown("mcp_servers", "tools of other servers");
}
