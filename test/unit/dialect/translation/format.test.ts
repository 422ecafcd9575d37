import { expect } from "vitest";
import { crossings } from "./translation.ts";

const open = { type: "object", properties: { a: { type: "string" } } };
const closed = { ...open, required: ["a"], additionalProperties: false };

const chatFormat = (schema: object, strict?: boolean) => ({
  response_format: { type: "json_schema", json_schema: { name: "n", schema, strict } },
});
const responsesFormat = (schema: object, strict?: boolean) => ({
  text: { format: { type: "json_schema", name: "n", schema, strict } },
});
const messagesFormat = (schema: object) => ({
  output_config: { format: { type: "json_schema", schema } },
});
const geminiFormat = (schema: object) => ({
  generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema },
});

crossings("structured output: a schema", [
  {
    from: "chat",
    to: "responses",
    given: chatFormat(closed, true),
    sent: responsesFormat(closed, true),
  },
  {
    from: "chat",
    to: "messages",
    with: "objects are closed, as the vendor demands",
    given: chatFormat(open),
    sent: messagesFormat({ ...open, additionalProperties: false }),
  },
  { from: "chat", to: "gemini", given: chatFormat(closed), sent: geminiFormat(closed) },
  {
    from: "responses",
    to: "chat",
    given: responsesFormat(open, false),
    sent: chatFormat(open, false),
  },
  {
    from: "responses",
    to: "messages",
    given: responsesFormat(closed, true),
    sent: messagesFormat(closed),
  },
  { from: "responses", to: "gemini", given: responsesFormat(closed), sent: geminiFormat(closed) },
  { from: "messages", to: "gemini", given: messagesFormat(closed), sent: geminiFormat(closed) },
]);

crossings("structured output: a schema that is followed exactly unasked", [
  {
    from: "messages",
    to: "chat",
    given: messagesFormat(closed),
    sent: {
      response_format: {
        type: "json_schema",
        json_schema: { name: "reply", schema: closed, strict: true },
      },
    },
  },
  {
    from: "messages",
    to: "chat",
    with: "not where OpenAI refuses the schema",
    given: messagesFormat(open),
    sent: { response_format: { json_schema: { schema: open, strict: false } } },
    dropped: ["output_config.format"],
  },
  {
    from: "messages",
    to: "responses",
    given: messagesFormat(closed),
    sent: { text: { format: { name: "reply", schema: closed, strict: true } } },
  },
  {
    from: "messages",
    to: "responses",
    with: "not where OpenAI refuses the schema",
    given: messagesFormat(open),
    sent: { text: { format: { schema: open, strict: false } } },
    dropped: ["output_config.format"],
  },
]);

const anyJson = { response_format: { type: "json_object" } };
const anyJsonText = { text: { format: { type: "json_object" } } };
const line = /^Answer with one valid JSON object and nothing else/;

crossings("structured output: json_object", [
  { from: "chat", to: "responses", given: anyJson, sent: anyJsonText },
  {
    from: "chat",
    to: "messages",
    with: "in words",
    given: anyJson,
    sent: { system: expect.stringMatching(line) },
    without: ["output_config"],
  },
  {
    from: "chat",
    to: "messages",
    with: "in words, behind the system text that is there",
    given: {
      ...anyJson,
      messages: [
        { role: "system", content: "A" },
        { role: "user", content: "q" },
      ],
    },
    sent: { system: [{ text: "A" }, { text: expect.stringMatching(line) }] },
  },
  {
    from: "chat",
    to: "gemini",
    given: anyJson,
    sent: { generationConfig: { responseMimeType: "application/json" } },
  },
  { from: "responses", to: "chat", given: anyJsonText, sent: anyJson },
  {
    from: "responses",
    to: "messages",
    with: "in words",
    given: anyJsonText,
    sent: { system: expect.stringMatching(line) },
  },
  {
    from: "responses",
    to: "gemini",
    given: anyJsonText,
    sent: { generationConfig: { responseMimeType: "application/json" } },
  },
]);

crossings("verbosity", [
  {
    from: "chat",
    to: "responses",
    given: { verbosity: "low" },
    sent: { text: { verbosity: "low" } },
  },
  { from: "chat", to: "messages", given: { verbosity: "low" }, dropped: ["verbosity"] },
  { from: "chat", to: "gemini", given: { verbosity: "low" }, dropped: ["verbosity"] },
  {
    from: "responses",
    to: "chat",
    given: { text: { verbosity: "low" } },
    sent: { verbosity: "low" },
  },
  {
    from: "responses",
    to: "messages",
    given: { text: { verbosity: "low" } },
    dropped: ["text.verbosity"],
  },
]);
