import { createHash } from "node:crypto";
import { crossings } from "./translation.ts";

const chatCall = (id: string) => ({
  id,
  type: "function",
  function: { name: "f", arguments: "{}" },
});
const item = (id: string) => ({ type: "function_call", call_id: id, name: "f", arguments: "{}" });
const odd = `functions.f:0/${"x".repeat(70)}`;
const sha = createHash("sha256").update(odd).digest("hex");

const oddChat = {
  messages: [
    { role: "user", content: "q" },
    { role: "assistant", tool_calls: [chatCall(odd)] },
    { role: "tool", tool_call_id: odd, content: "1" },
  ],
};
const oddItems = {
  input: [item(odd), { type: "function_call_output", call_id: odd, output: "1" }],
};

crossings("ids: a call and its result get the same one that the vendor takes", [
  {
    from: "chat",
    to: "messages",
    given: oddChat,
    sent: {
      messages: [
        {},
        { content: [{ id: `toolu_${sha.slice(0, 40)}` }] },
        { content: [{ tool_use_id: `toolu_${sha.slice(0, 40)}` }] },
      ],
    },
  },
  {
    from: "chat",
    to: "responses",
    given: oddChat,
    sent: {
      input: [{}, { call_id: `call_${sha.slice(0, 48)}` }, { call_id: `call_${sha.slice(0, 48)}` }],
    },
  },
  {
    from: "responses",
    to: "chat",
    given: oddItems,
    sent: {
      messages: [
        { tool_calls: [{ id: `call_${sha.slice(0, 32)}` }] },
        { tool_call_id: `call_${sha.slice(0, 32)}` },
      ],
    },
  },
  {
    from: "responses",
    to: "messages",
    given: oddItems,
    sent: {
      messages: [
        { content: [{ id: `toolu_${sha.slice(0, 40)}` }] },
        { content: [{ tool_use_id: `toolu_${sha.slice(0, 40)}` }] },
      ],
    },
  },
]);
