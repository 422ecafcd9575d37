import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { crossings, send } from "./translation.ts";

const schema = { type: "object", properties: { a: { type: "string" } } };
const nothing = { type: "object", properties: {} };
const chatTools = {
  tools: [
    { type: "function", function: { name: "f", description: "d", parameters: schema } },
    { type: "function", function: { name: "g" } },
  ],
};
const responsesTools = {
  tools: [
    { type: "function", name: "f", description: "d", parameters: schema, strict: false },
    { type: "function", name: "g", parameters: null },
  ],
};
const messagesTools = {
  tools: [
    { name: "f", description: "d", input_schema: schema },
    { name: "g", input_schema: nothing },
  ],
};
const declared = {
  tools: [
    {
      functionDeclarations: [
        { name: "f", description: "d", parametersJsonSchema: schema },
        { name: "g" },
      ],
    },
  ],
};
const flat = [
  { type: "function", name: "f", description: "d", parameters: schema, strict: false },
  { type: "function", name: "g", parameters: nothing, strict: false },
];
const nested = [
  { type: "function", function: { name: "f", description: "d", parameters: schema } },
  { type: "function", function: { name: "g", parameters: nothing } },
];

crossings("tools", [
  { from: "chat", to: "messages", given: chatTools, sent: messagesTools },
  { from: "chat", to: "responses", given: chatTools, sent: { tools: flat } },
  { from: "chat", to: "gemini", given: chatTools, sent: declared },
  { from: "responses", to: "chat", given: responsesTools, sent: { tools: nested } },
  { from: "responses", to: "messages", given: responsesTools, sent: messagesTools },
  { from: "responses", to: "gemini", given: responsesTools, sent: declared },
  { from: "messages", to: "chat", given: messagesTools, sent: { tools: nested } },
  { from: "messages", to: "responses", given: messagesTools, sent: { tools: flat } },
  { from: "messages", to: "gemini", given: messagesTools, sent: declared },
]);

const closed = { ...schema, required: ["a"], additionalProperties: false };
const strictly = (input_schema: object) => ({
  tools: [{ name: "f", input_schema, strict: true }],
});

crossings("tools that are strict", [
  {
    from: "messages",
    to: "chat",
    given: strictly(closed),
    sent: { tools: [{ function: { strict: true } }] },
  },
  {
    from: "messages",
    to: "chat",
    with: "not where OpenAI refuses the schema",
    given: strictly(schema),
    sent: { tools: [{ function: { strict: false } }] },
    dropped: ["tools.strict"],
  },
  {
    from: "messages",
    to: "responses",
    given: strictly(closed),
    sent: { tools: [{ strict: true }] },
  },
  {
    from: "messages",
    to: "responses",
    with: "not where OpenAI refuses the schema",
    given: strictly(schema),
    sent: { tools: [{ strict: false }] },
    dropped: ["tools.strict"],
  },
  {
    from: "chat",
    to: "messages",
    given: { tools: [{ type: "function", function: { name: "f", strict: true } }] },
    sent: { tools: [{ name: "f", strict: true }] },
  },
  {
    from: "responses",
    to: "gemini",
    given: { tools: [{ type: "function", name: "f", parameters: closed, strict: true }] },
    dropped: ["tools.strict"],
  },
]);

it("wire §3, tools: names that a vendor refuses become 55 characters, _ and 8 of their SHA-256", () => {
  const long = "a.".repeat(50);
  const digest = createHash("sha256").update(long).digest("hex").slice(0, 8);
  const legal = `${"a_".repeat(50).slice(0, 55)}_${digest}`;
  const given = { tools: [{ type: "function", name: long, parameters: null }] };
  expect(send({ from: "responses", to: "chat" }, given).body.tools[0].function.name).toBe(legal);
  expect(send({ from: "responses", to: "messages" }, given).body.tools[0].name).toBe(legal);
});
