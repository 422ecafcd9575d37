import { describe, expect, it } from "vitest";
import {
  answer,
  answerStreamed,
  crossings,
  directions,
  type Json,
  type Caller,
} from "./translation.ts";
import { replyOf, said } from "./replies.ts";

const search = {
  type: "server_tool_use",
  id: "srvtoolu_1",
  name: "web_search",
  input: { query: "x" },
};
const searched = { type: "web_search_call", id: "ws_1", status: "completed" };

const turns: Readonly<Record<Caller, Json>> = {
  chat: { messages: [{ role: "user", content: [{ type: "x_part", x: 1 }] }] },
  responses: {
    input: [
      { role: "user", content: "q" },
      { type: "item_reference", id: "msg_1" },
      { role: "user", content: "q" },
    ],
  },
  messages: { messages: [{ role: "user", content: [{ type: "x_block", x: 1 }] }] },
};
const types = { chat: /x_part/, responses: /item_reference/, messages: /x_block/ };

crossings(
  "opaque parts: what the question may depend on is refused by name",
  directions.map((way) => ({ ...way, given: turns[way.from], refused: types[way.from] })),
);

describe("opaque parts: what only the vendor's style knows is left out of a reply, and named", () => {
  it.each(["chat", "responses"] as const)(
    "what only the vendor's style knows is left out of a reply, and named: messages → %s",
    (to) => {
      const reply = replyOf("messages", { messages: [search, { type: "text", text: "hi" }] });
      for (const got of [
        answer({ from: "messages", to }, reply),
        answerStreamed({ from: "messages", to }, reply),
      ]) {
        expect(got.dropped).toEqual(["server_tool_use"]);
        expect(got.text).toContain("hi");
        expect(got.text).not.toContain("srvtoolu_1");
      }
    },
  );

  it.each(["chat", "messages"] as const)(
    "what only the vendor's style knows is left out of a reply, and named: responses → %s",
    (to) => {
      const reply = replyOf("responses", { responses: [searched, said("hi")] });
      for (const got of [
        answer({ from: "responses", to }, reply),
        answerStreamed({ from: "responses", to }, reply),
      ]) {
        expect(got.dropped).toEqual(["web_search_call"]);
        expect(got.text).toContain("hi");
      }
    },
  );

  it.each(["chat", "responses", "messages"] as const)(
    "what only the vendor's style knows is left out of a reply, and named: gemini → %s",
    (to) => {
      const code = { executableCode: { language: "PYTHON", code: "1" } };
      const reply = replyOf("gemini", { gemini: [code, { text: "hi" }] });
      expect(answer({ from: "gemini", to }, reply).dropped).toEqual(["executableCode"]);
    },
  );
});
