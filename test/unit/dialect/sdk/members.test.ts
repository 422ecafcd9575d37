/**
 * R-TXT-13: nothing unknown is free. A new version of an SDK fails here until its new names have a
 * class.
 */
import { expect, it } from "vitest";
import {
  recordingMembers,
  recordingNested,
  speechMembers,
  speechNested,
} from "../../../../src/dialect/operations/audio.ts";
import type { ToolRules } from "../../../../src/dialect/features/billed-features.ts";
import {
  chatMembers,
  chatNested,
  chatTools,
  chatTypes,
  chatUsage,
  openaiBetas,
} from "../../../../src/dialect/chat-completions/members.ts";
import {
  completionsMembers,
  completionsNested,
} from "../../../../src/dialect/operations/completions.ts";
import { embeddingsMembers } from "../../../../src/dialect/operations/embeddings.ts";
import {
  geminiMembers,
  geminiNested,
  geminiTools,
  geminiUsage,
  interactionMembers,
} from "../../../../src/dialect/gemini/members.ts";
import { imagesMembers, imagesNested } from "../../../../src/dialect/operations/images.ts";
import {
  messagesBetas,
  messagesMembers,
  messagesNested,
  messagesTools,
  messagesTypes,
  messagesUsage,
} from "../../../../src/dialect/messages/members.ts";
import {
  moderationsMembers,
  moderationsNested,
} from "../../../../src/dialect/operations/moderations.ts";
import {
  responsesMembers,
  responsesNested,
  responsesTools,
  responsesTypes,
  responsesUsage,
} from "../../../../src/dialect/responses/members.ts";
import { readTypeNames, type TypeNames } from "./names.ts";

const names = readTypeNames();

function namesOf(type: string): TypeNames {
  const found = names.get(type);
  if (found === undefined) throw new Error(`types.ts has no ${type}`);
  return found;
}

/** The names that the table does not have. */
function unclassified(table: object, found: Iterable<string>): readonly string[] {
  return [...found].filter((name) => !Object.hasOwn(table, name));
}

function isKnownTool({ free, billed, refused }: ToolRules, name: string): boolean {
  return (
    new RegExp(`^(?:${free.join("|")})$`).test(name) ||
    billed.some(([pattern]) => pattern.test(name)) ||
    refused.includes(name)
  );
}

const styles = [
  { style: "Chat", members: chatMembers, nested: chatNested, types: chatTypes, usage: chatUsage },
  {
    style: "Responses",
    members: responsesMembers,
    nested: responsesNested,
    types: responsesTypes,
    usage: responsesUsage,
  },
  {
    style: "Messages",
    members: messagesMembers,
    nested: messagesNested,
    types: messagesTypes,
    usage: messagesUsage,
  },
  {
    style: "Gemini",
    members: geminiMembers,
    nested: { ...geminiNested, ...geminiTools },
    types: {},
    usage: geminiUsage,
  },
];

const tools: Record<string, ToolRules> = {
  Chat: chatTools,
  Responses: responsesTools,
  Messages: messagesTools,
  Gemini: geminiTools,
};

/** Tools are members at Gemini, and types elsewhere. */
function toolsOf(style: string): ReadonlySet<string> {
  const { members, ownTypes } = namesOf(`${style}Tool`);
  return style === "Gemini" ? members : ownTypes;
}

it.each(styles)("each member of a $style request of the SDK has a class", ({ style, ...table }) => {
  const { members, nested } = namesOf(`${style}Request`);
  const known = toolsOf(style);
  expect(members.size).toBeGreaterThan(20);
  expect(unclassified(table.members, members)).toEqual([]);
  expect(unclassified(table.nested, nested).filter((name) => !known.has(name))).toEqual([]);
});

it.each(styles)("each type in a $style request of the SDK has a class", ({ style, types }) => {
  const known = toolsOf(style);
  const found = unclassified(types, namesOf(`${style}Request`).types);
  // The types of JSON Schema are Gemini's only ones.
  const others = style === "Gemini" ? [] : found.filter((name) => !known.has(name));
  expect(others).toEqual([]);
});

it.each(styles)("each $style tool of the SDK is free, priced or refused", ({ style }) => {
  const rules = tools[style];
  const found = toolsOf(style);
  expect(found.size).toBeGreaterThan(0);
  expect(rules && [...found].filter((name) => !isKnownTool(rules, name))).toEqual([]);
});

it.each(styles)("each figure of a $style usage of the SDK has a class", ({ style, usage }) => {
  const { members, nested } = namesOf(`${style}Usage`);
  expect(unclassified(usage, [...members, ...nested])).toEqual([]);
});

it("each member of a request for an interaction has a class", () => {
  const { members } = namesOf("InteractionRequest");
  expect(members).toContain("environment");
  expect(unclassified(interactionMembers, members)).toEqual([]);
});

it.each([
  { operation: "Embeddings", members: embeddingsMembers, nested: {} },
  { operation: "Images", members: imagesMembers, nested: imagesNested },
  { operation: "Speech", members: speechMembers, nested: speechNested },
  { operation: "Recordings", members: recordingMembers, nested: recordingNested },
  { operation: "Moderations", members: moderationsMembers, nested: moderationsNested },
  { operation: "Completions", members: completionsMembers, nested: completionsNested },
])("each member of a request of the SDK has a class: $operation", ({ operation, ...table }) => {
  const { members, nested } = namesOf(`${operation}Request`);
  expect(members).toContain("model");
  expect(unclassified(table.members, members)).toEqual([]);
  expect(unclassified(table.nested, nested)).toEqual([]);
});

it("each beta of the SDKs has a class", () => {
  const { words } = namesOf("MessagesBeta");
  expect(words.size).toBeGreaterThan(40);
  expect(unclassified(messagesBetas, words)).toEqual([]);
  expect(unclassified(openaiBetas, namesOf("ResponsesBeta").words)).toEqual([]);
});
