/**
 * Keeps conversations with their route and credential, so that vendors' prompt caches are used: the
 * choice among healthy candidates is a hash of the conversation (R-RTE-1). It is the same in every
 * process, and nothing is stored. If a candidate fails, its conversations go to others, and come
 * back when it is healthy again.
 */
import { hash } from "node:crypto";

/** Identifies a conversation: the client's ID of it, or its first messages. */
export type ConversationId = string | Uint8Array;

/**
 * The key of a conversation. Equal conversations of other accounts, API keys or models have other
 * keys.
 */
export function conversationKey(
  id: ConversationId,
  owner: { readonly accountId: string; readonly keyId: string; readonly model: string },
): string {
  const scope = `${owner.accountId}\0${owner.keyId}\0${owner.model}\0`;
  return hash("sha1", Buffer.concat([Buffer.from(scope), Buffer.from(id)]), "base64url");
}
