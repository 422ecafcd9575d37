/** Settings of LiteLLM without a counterpart, and what to do instead. */
import { objectOf } from "../price-import/genai-prices.ts";
import type { ImportNote } from "./source.ts";

const advice: readonly (readonly [names: RegExp, text: string])[] = [
  [/callback|langfuse|logging/, "no callbacks: use metrics, traces and the call log"],
  [/guardrail|moderation|presidio/, "no guardrails: check content before the gateway"],
  [/cache|redis/, "replies are not cached, and no Redis is used: remove it"],
  [/budget/, "create accounts with a balance, and set budgets of accounts and keys"],
  [/routing_strategy/, "routes use weights and priorities: check them under models"],
  [/retries|retry/, "set retry: { attempts, within } of models"],
  [/timeout/, "set timeouts of vendors"],
  [/cooldown|allowed_fails/, "set breaker of vendors"],
  [/master_key|^ui_/, "set UAS_OPERATOR_TOKEN, and create keys by uas key create"],
  [/database|store_model_in_db/, "set DATABASE_URL; models of LiteLLM's database are not here"],
  [/key_generation|virtual|upperbound_key|default_key/, "create keys by uas key create"],
  [/team|user|sso|jwt|oauth|rbac/, "create an account for each team by uas account create"],
  [/alert|slack/, "set alerts: for the operator"],
  [/drop_params|modify_params/, "members that a vendor does not take are translated or refused"],
  [/parallel_requests/, "set concurrency under limits, or of credentials"],
  [/pass_through/, "set native_prefix of a vendor for its own API"],
  [/mcp|agent|tool|vector_store|prompt|assistant|search/, "not served: keep it outside"],
  [/fallbacks/, "only fallbacks after failures exist: name fallback_models"],
  [/environment_variables/, "set these variables for the gateway; their values are not copied"],
  [/^include$/, "import each of these files too, and name the results under include:"],
];

/** Notes for the members of a section that are not read. */
export function unreadMembers(
  section: unknown,
  place: string,
  options: {
    readonly read: ReadonlySet<string>;
    readonly lineOf: (name: string) => number | undefined;
  },
): readonly ImportNote[] {
  return Object.entries(objectOf(section) ?? {}).flatMap(([name, value]) => {
    const isUnset = value === null || value === false;
    // Members that begin with x- hold anchors only.
    if (options.read.has(name) || isUnset || name.startsWith("x-")) return [];
    const line = options.lineOf(name);
    const shown = place === "" ? name : `${place}.${name}`;
    return [{ place: line === undefined ? shown : `${shown} (line ${line})`, text: textFor(name) }];
  });
}

function textFor(name: string): string {
  const found = advice.find(([names]) => names.test(name));
  return found?.[1] ?? "has no counterpart: see docs/migrate-from.md";
}
