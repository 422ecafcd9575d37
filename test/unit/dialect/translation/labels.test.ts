import { describe, expect, it } from "vitest";
import { crossings, refusal } from "./translation.ts";

const user = { metadata: { user_id: "u" } };
const long = "x".repeat(70);

crossings("metadata / user", [
  { from: "chat", to: "messages", given: { user: "u" }, sent: user },
  { from: "chat", to: "messages", given: { safety_identifier: "u" }, sent: user },
  {
    from: "chat",
    to: "messages",
    with: "the older name has no place beside the newer",
    given: { safety_identifier: "u", user: "v" },
    sent: user,
    dropped: ["user"],
  },
  { from: "chat", to: "responses", given: { user: "u" }, sent: { safety_identifier: "u" } },
  {
    from: "chat",
    to: "responses",
    given: { metadata: { a: "b" } },
    sent: { metadata: { a: "b" } },
  },
  { from: "chat", to: "messages", given: { metadata: { a: "b" } }, dropped: ["metadata"] },
  { from: "chat", to: "gemini", given: { user: "u" }, dropped: ["user"] },
  { from: "responses", to: "chat", given: { user: "u" }, sent: { user: "u" } },
  { from: "responses", to: "messages", given: { safety_identifier: "u" }, sent: user },
  {
    from: "responses",
    to: "gemini",
    given: { safety_identifier: "u" },
    dropped: ["safety_identifier"],
  },
  { from: "messages", to: "chat", given: user, sent: { user: "u" } },
  { from: "messages", to: "responses", given: user, sent: { safety_identifier: "u" } },
  {
    from: "messages",
    to: "responses",
    with: "hashed where it is too long",
    given: { metadata: { user_id: long } },
    sent: { safety_identifier: expect.stringMatching(/^[0-9a-f]{64}$/) },
  },
  { from: "messages", to: "gemini", given: user, dropped: ["metadata.user_id"] },
  {
    from: "messages",
    to: "chat",
    given: { metadata: { team: "t" } },
    dropped: ["metadata.team"],
  },
]);

const tier = (service_tier: string) => ({ service_tier });

crossings("service_tier", [
  { from: "chat", to: "messages", given: tier("auto"), sent: tier("auto") },
  { from: "chat", to: "messages", given: tier("default"), sent: tier("standard_only") },
  {
    from: "chat",
    to: "messages",
    given: tier("flex"),
    without: ["service_tier"],
    dropped: ["service_tier"],
  },
  { from: "chat", to: "responses", given: tier("priority"), sent: tier("priority") },
  { from: "chat", to: "gemini", given: tier("flex"), sent: { serviceTier: "flex" } },
  { from: "responses", to: "chat", given: tier("flex"), sent: tier("flex") },
  { from: "responses", to: "messages", given: tier("default"), sent: tier("standard_only") },
  { from: "responses", to: "messages", given: tier("flex"), dropped: ["service_tier"] },
  { from: "messages", to: "chat", given: tier("auto"), sent: tier("auto") },
  { from: "messages", to: "chat", given: tier("standard_only"), sent: tier("default") },
  { from: "messages", to: "responses", given: tier("standard_only"), sent: tier("default") },
  {
    from: "messages",
    to: "gemini",
    given: tier("standard_only"),
    sent: { serviceTier: "standard" },
  },
]);

const control = { cache_control: { type: "ephemeral", ttl: "1h" } };
const cached = {
  system: [{ type: "text", text: "A", ...control }],
  tools: [{ name: "f", input_schema: { type: "object" }, ...control }],
};
const hint = { prompt_cache_breakpoint: { mode: "explicit" } };
const marked = { messages: [{ role: "user", content: [{ type: "text", text: "hi", ...hint }] }] };
const markedItems = {
  input: [{ role: "user", content: [{ type: "input_text", text: "hi", ...hint }] }],
};
const blocks = { content: [{ text: "hi", cache_control: { type: "ephemeral" } }] };

crossings("cache hints", [
  ...(["chat", "responses", "gemini"] as const).map((to) => ({
    from: "messages" as const,
    to,
    with: "stripped",
    given: cached,
    without: ["system.0.cache_control", "tools.0.cache_control", "messages.0.cache_control"],
    dropped: ["cache_control"],
  })),
  {
    from: "messages",
    to: "chat",
    with: "of the whole request",
    given: control,
    without: ["cache_control"],
    dropped: ["cache_control"],
  },
  { from: "chat", to: "messages", given: marked, sent: { messages: [blocks] } },
  { from: "chat", to: "responses", given: marked, sent: markedItems },
  { from: "chat", to: "gemini", given: marked, dropped: ["prompt_cache_breakpoint"] },
  { from: "responses", to: "messages", given: markedItems, sent: { messages: [blocks] } },
  {
    from: "responses",
    to: "chat",
    with: "compatible vendors refuse it",
    given: markedItems,
    sent: { messages: [{ content: "hi" }] },
    dropped: ["prompt_cache_breakpoint"],
  },
  {
    from: "chat",
    to: "responses",
    given: { prompt_cache_key: "k", prompt_cache_retention: "24h" },
    sent: { prompt_cache_key: "k", prompt_cache_retention: "24h" },
  },
  { from: "chat", to: "messages", given: { prompt_cache_key: "k" }, dropped: ["prompt_cache_key"] },
  { from: "chat", to: "gemini", given: { prompt_cache_key: "k" }, dropped: ["prompt_cache_key"] },
  {
    from: "responses",
    to: "chat",
    given: { prompt_cache_key: "k" },
    sent: { prompt_cache_key: "k" },
  },
]);

crossings("state", [
  ...(["chat", "messages", "gemini"] as const).flatMap((to) => [
    { from: "responses" as const, to, given: { background: true }, refused: /^background: / },
    { from: "responses" as const, to, given: { conversation: "c" }, refused: /^conversation: / },
    { from: "responses" as const, to, given: { prompt: { id: "p" } }, refused: /^prompt: / },
    { from: "responses" as const, to, given: { store: false }, dropped: ["store"] },
  ]),
  {
    from: "messages",
    to: "chat",
    given: { container: "c", context_management: { edits: [] } },
    without: ["container", "context_management"],
    dropped: ["container", "context_management"],
  },
  { from: "messages", to: "chat", given: { safeguards: {} }, refused: /^safeguards: / },
]);

describe("wire §3, state: a thread is refused in the words that the SDK knows", () => {
  it.each(["chat", "responses", "gemini"] as const)(
    "a thread is refused in the words that the SDK knows: messages → %s",
    (to) => {
      const error = refusal({ from: "messages", to }, { thread: { type: "create" } });
      expect(error.details).toEqual({
        error_code: "thread_unsupported_request",
        unsupported: ["thread"],
      });
    },
  );
});
