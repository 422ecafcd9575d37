/** The one built-in tool that all three styles have. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Extra, OpaquePart } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../body-members.ts";
import { isRecord, type JsonRecord, parseRecord, recordAt } from "../json.ts";
import type { EncodeContext } from "./encode-context.ts";

/**
 * The web search of messages as a tool of this style; `undefined` where the tool is another.
 *
 * @throws GatewayError INVALID_REQUEST for domains that the search must leave out: it could not be told
 */
export function webSearchTool(tool: OpaquePart, context: EncodeContext): JsonRecord | undefined {
  if (tool.dialect !== Dialect.MESSAGES || !/^web_search_\d+$/.test(tool.type)) return undefined;
  const given = parseRecord(tool.json) ?? {};
  const { type: _type, name: _name, allowed_domains, blocked_domains, ...rest } = given;
  if (Array.isArray(blocked_domains) && blocked_domains.length > 0) {
    throw invalid(
      '"blocked_domains" is not supported with this model: use "allowed_domains"',
      "tools.blocked_domains",
    );
  }
  const { user_location, ...others } = rest;
  for (const name of Object.keys(others)) context.drop(`tools.${name}`);
  return {
    type: "web_search",
    ...(Array.isArray(allowed_domains) && { filters: { allowed_domains } }),
    ...(isRecord(user_location) && { user_location }),
  };
}

/** The `web_search_options` of chat completions as a tool of this style. */
export function webSearchOfOptions({ json }: Extra): JsonRecord {
  const options = parseRecord(json) ?? {};
  const size = options["search_context_size"];
  const location = recordAt(options, "user_location");
  const approximate = location && recordAt(location, "approximate");
  return {
    type: "web_search",
    ...(typeof size === "string" && { search_context_size: size }),
    ...(approximate && { user_location: { type: "approximate", ...approximate } }),
  };
}
