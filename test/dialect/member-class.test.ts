/** R-TXT-13: what the tables of members promise, the guards keep. */
import { describe, expect, it } from "vitest";
import { chatMembers } from "../../src/dialect/chat-completions/members.ts";
import { chatCompletions } from "../../src/dialect/chat-completions/dialect.ts";
import { refuseGeminiMembers } from "../../src/dialect/gemini/guard.ts";
import { geminiMembers } from "../../src/dialect/gemini/members.ts";
import { namesToCheck } from "../../src/dialect/member-class.ts";
import { messages } from "../../src/dialect/messages/dialect.ts";
import { messagesMembers } from "../../src/dialect/messages/members.ts";
import { responses } from "../../src/dialect/responses/dialect.ts";
import { responsesMembers } from "../../src/dialect/responses/members.ts";

/** Values of which some member makes a request that costs more, or names something stored. */
const values: readonly unknown[] = [
  "something",
  ["audio"],
  [{ type: "url", url: "https://a.test" }],
  {
    ...{ type: "something", id: "something", model: "something", token: "something" },
    ...{ previous_message_id: "something", cyber: "something", enabled: true },
    ...{ edits: [{ type: "something" }] },
  },
  { ttl: "1h" },
  { ttl: "12h" },
];

describe.each([
  { style: chatCompletions, members: chatMembers },
  { style: responses, members: responsesMembers },
  { style: messages, members: messagesMembers },
])("$style.word", ({ style, members }) => {
  it.each(namesToCheck(members))("%s is refused without a price or for good", (name) => {
    const isRefused = (value: unknown): boolean => {
      const body = Buffer.from(JSON.stringify({ model: "m", [name]: value }));
      try {
        style.guard?.(body, { isVerified: false });
        return false;
      } catch {
        return true;
      }
    };
    expect(values.some((value) => isRefused(value))).toBe(true);
  });
});

it.each(["routingConfig", "routing_config", "modelArmorConfig"])(
  "Gemini's own interface refuses %s",
  (name) => {
    expect(() => refuseGeminiMembers((each) => (each === name ? {} : undefined))).toThrow(name);
  },
);

it("Gemini's own interface has nothing against free members", () => {
  const free = Object.keys(geminiMembers).filter(
    (name) => !namesToCheck(geminiMembers).includes(name),
  );
  expect(() => refuseGeminiMembers((name) => (free.includes(name) ? {} : undefined))).not.toThrow();
});
