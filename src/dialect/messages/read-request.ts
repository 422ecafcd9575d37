/** The request half of relaying messages. */
import { invalid } from "../../core/validation.ts";
import { knownMembers, type Members, missing, readCount } from "../body-members.ts";
import type { VendorModel } from "../codec.ts";
import type { ReadRequestOptions, TextRequest } from "../dialect.ts";
import { findMembers, sameStyleRequest } from "../turns/same-style-request.ts";
import type { TurnRules } from "../turns/relayed-turns.ts";
import { guardedMessagesMembers } from "./guard.ts";
import { traitsOf } from "./model-traits.ts";

const known = knownMembers([
  "model",
  "messages",
  "max_tokens",
  "stream",
  ...guardedMessagesMembers,
]);

/** Implements {@link TextDialect.readRequest}. */
export function readMessagesRequest(body: Uint8Array, options: ReadRequestOptions): TextRequest {
  const found = findMembers(body, known);
  requireMessages(found.bytes, found.members);
  // 0 is legal: it only warms the vendor's prompt cache.
  const maxTokens = readCount(found.bytes, found.members, "max_tokens", { min: 0 });
  if (maxTokens === undefined) {
    const advice = "say how many tokens the reply may have at most";
    throw missing(found.members, ["max_tokens"], advice);
  }
  return sameStyleRequest(found, options, { maxOutputTokens: maxTokens, form, rulesFor });
}

const form = { list: "messages", textType: "text", system: "system" } as const;

/**
 * Without a setting, late system text is changed only if the model is known to refuse it: the call
 * would fail.
 */
function rulesFor({ model, quirks }: VendorModel): TurnRules {
  const isRefused = traitsOf(model).lateSystem === false;
  const lateSystem = quirks?.lateSystem ?? (isRefused ? "as_user" : "in_place");
  return { lateSystem, developerRole: "accepted" };
}

function requireMessages(bytes: Buffer, members: Members): void {
  const messages = members.get("messages");
  if (messages === undefined) {
    throw missing(members, ["messages"], "send an array with at least one message");
  }
  if (bytes[messages.valueStart] !== 0x5b) {
    throw invalid("messages", '"messages" must be an array');
  }
}
