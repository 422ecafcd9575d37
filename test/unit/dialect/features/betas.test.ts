/** R-TXT-13: betas that a vendor may bill are known, priced or refused. */
import { expect, it } from "vitest";
import { type BetaRules, checkBetas } from "../../../../src/dialect/features/betas.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import type { TextDialect } from "../../../../src/dialect/dialect.ts";
import { messages } from "../../../../src/dialect/messages/dialect.ts";
import { responses } from "../../../../src/dialect/responses/dialect.ts";
import { GatewayError } from "../../../../src/core/errors.ts";

function refusalOf(style: TextDialect, value: string, rules: BetaRules = {}): string {
  try {
    checkBetas({ [style.betas.header]: value }, style.betas, rules);
    return "";
  } catch (error) {
    if (error instanceof GatewayError) return `${error.param ?? ""}: ${error.message}`;
    throw error;
  }
}

it.each([
  [messages, "claude-code-20250219,interleaved-thinking-2025-05-14"],
  [messages, " inline-tools-2026-09-15 , , Effort-2025-11-24"],
  [messages, ""],
  [responses, "responses=experimental"],
  [chatCompletions, "assistants=v2"],
])("betas of official clients pass", (style, value) => {
  expect(refusalOf(style, value)).toBe("");
});

it.each([
  [messages, "next-year-2027-01-01"],
  [messages, "effort-2025-11-24,next-year-2027-01-01"],
  [messages, "constructor"],
  [responses, "responses_next=v1"],
  [chatCompletions, "responses_next=v1"],
])(
  "an unknown beta is refused by its name, unless the operator lets unknown ones pass",
  (style, value) => {
    const name = value.split(",").at(-1) ?? "";
    expect(refusalOf(style, value)).toContain(`${style.betas.header}: `);
    expect(refusalOf(style, value)).toContain(`"${name}"`);
    expect(refusalOf(style, value)).toContain("unknown_betas");
    expect(refusalOf(style, value, { unknownBetas: "pass" })).toBe("");
  },
);

it.each([
  [messages, "managed-agents-2026-04-01"],
  [messages, "USER-PROFILES-BILLING-2026-10-01"],
  [responses, "responses_multi_agent=v1"],
])(
  "a beta that cannot be priced is refused whatever the operator says of unknown ones",
  (style, value) => {
    expect(refusalOf(style, value, { unknownBetas: "pass" })).toContain("is not served here");
  },
);

it("the beta for long inputs needs prices for long inputs", () => {
  const value = "context-1m-2025-08-07";
  expect(refusalOf(messages, value)).toContain('no price "tiers"');
  expect(refusalOf(messages, value, { unknownBetas: "pass" })).toContain('no price "tiers"');
  expect(refusalOf(messages, value, { hasPrice: (unit) => unit === "tiers" })).toBe("");
});
