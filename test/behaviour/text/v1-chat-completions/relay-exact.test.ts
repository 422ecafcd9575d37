/** Nothing but what must change changes on the way to the vendor and back (R-TXT-1). */
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { findDuplicateMember } from "../../../../src/wire/json/duplicate-member.ts";
import { bytes, byteStream } from "../../../support/upstream/behaviour.ts";
import { publicModel, useGateway } from "../../harness.ts";
import {
  jsonText,
  type MemberText,
  objectText,
  shuffled,
  space,
  spacing,
  unknownMembers,
} from "./arbitrary.ts";

const fixture = useGateway();
const runs = { numRuns: 60 };

const publicText = fc.constantFrom(`"${publicModel}"`, '"publi\\u0063-model"');
const messages = fc.constantFrom(
  '[{"role":"user","content":"hi"}]',
  '[ {"role" : "user","content":[{"type":"text","text":"\\u00e9é🌍","x":1e400}] } ]',
  // The style has no place for wrapped seals: this is a client's text like any other.
  '[ {"role" : "user","content":"uas1.eyJkIjozfQ" , "x":1.0} ]',
);
const options = fc.constantFrom(
  undefined,
  "null",
  "{}",
  '{ "include_usage" : false }',
  '{"include_obfuscation":false}',
  '{"include_usage":true}',
  '{ "x": 1, "include_usage" : true }',
);

/**
 * Whether a body was refused because a name occurs twice in it, and it has names that the guards
 * read (R-TXT-10).
 */
function isRepeated(body: string, status: number): boolean {
  return status === 400 && findDuplicateMember(Buffer.from(body)) !== undefined;
}

/** A body's members in order, and what stands for the model in them. */
const requestMembers = fc
  .record({ publicText, messages, options, stream: fc.boolean(), unknown: unknownMembers })
  .chain((parts) => {
    const members: MemberText[] = [
      ['"model"', parts.publicText],
      ['"messages"', parts.messages],
      ...parts.unknown,
    ];
    if (parts.stream) members.push(['"stream"', "true"]);
    if (parts.stream && parts.options) members.push(['"stream_options"', parts.options]);
    return shuffled(fc.constant(members)).map((shuffledMembers) => ({
      ...parts,
      members: shuffledMembers,
    }));
  });

it("request: only the model's name and the wish for usage", async () => {
  await fc.assert(
    fc.asyncProperty(requestMembers, spacing, async ({ members, stream, options: given }, gaps) => {
      fixture.upstream.clear();
      const sent = objectText(members, gaps);
      const reply = await fixture.send("/v1/chat/completions", { body: sent });
      if (isRepeated(sent, reply.status)) return;
      expect(reply.status).toBe(200);
      const got = fixture.upstream.last().body.toString();
      const mine = members.map(
        ([name, text]): MemberText => [name, name === '"model"' ? '"vendor-model"' : text],
      );
      const isAsked =
        given?.includes('"include_usage":true') || given?.includes('"include_usage" : true');
      if (!stream || isAsked) expect(got).toBe(objectText(mine, gaps));
      else if (given === undefined) expectInjected(got, objectText(mine, gaps));
      else expectSet(got, mine, { gaps, given });
    }),
    runs,
  );
});

/** One member more, at any place between two others; every other byte as it was. */
function expectInjected(got: string, without: string): void {
  const member = '"stream_options":{"include_usage":true}';
  const candidates = [`,${member}`, `${member},`].map((text) => got.replace(text, ""));
  expect(candidates).toContain(without);
}

/** The member's value has `include_usage` set and keeps the rest; every other byte is as it was. */
function expectSet(
  got: string,
  members: readonly MemberText[],
  { gaps, given }: { gaps: Parameters<typeof objectText>[1]; given: string },
): void {
  const mark = "\u0000";
  const template = objectText(
    members.map(([name, text]): MemberText => [name, name === '"stream_options"' ? mark : text]),
    gaps,
  );
  const [before = "", after = ""] = template.split(mark);
  expect(got.startsWith(before)).toBe(true);
  expect(got.endsWith(after)).toBe(true);
  const value: unknown = JSON.parse(got.slice(before.length, got.length - after.length));
  const kept = JSON.parse(given) as Record<string, unknown> | null;
  expect(value).toEqual({ ...kept, include_usage: true });
}

const vendorName = fc.constantFrom(
  '"vendor-model"',
  '"vendor-model-2026-01-01"',
  "null",
  undefined,
);
const usage = '{ "prompt_tokens":3,"completion_tokens" : 2,"total_tokens":5, "x": 2.50 }';

/** A reply's or chunk's members, unordered. */
function withModel(model: string | undefined, rest: readonly MemberText[]): MemberText[] {
  return model === undefined ? [...rest] : [['"model"', model], ...rest];
}

/** Returns the client's bytes: the public name if the vendor wrote a string. */
function restored(list: readonly MemberText[]): MemberText[] {
  return list.map(([name, text]) =>
    name === '"model"' && text.startsWith('"') ? [name, `"${publicModel}"`] : [name, text],
  );
}

const choices = fc.constantFrom(
  '[{"index":0,"message":{"role":"assistant","content":"\\u0048é🌍","model":"vendor-model"},"finish_reason":"stop"}]',
  '[ { "index" : 0, "message": {"content":null,"usage":null,"tool_calls":[{"id":"c","function":{"arguments":"{\\"model\\":1}"}}]}, "finish_reason":"tool_calls" } ]',
);

it("whole reply: only the model's name", async () => {
  const reply = fc
    .tuple(vendorName, choices, unknownMembers)
    .chain(([model, choice, unknown]) =>
      shuffled(
        fc.constant(withModel(model, [['"choices"', choice], ['"usage"', usage], ...unknown])),
      ),
    );
  await fc.assert(
    fc.asyncProperty(reply, spacing, async (list, gaps) => {
      fixture.upstream.script(bytes(objectText(list, gaps)));
      const got = await fixture.chat({
        model: publicModel,
        messages: [{ role: "user", content: "x" }],
      });
      expect(got.body.toString()).toBe(objectText(restored(list), gaps));
    }),
    runs,
  );
});

/** One event of a stream: what the vendor sends, and what each kind of client gets. */
interface StreamEvent {
  readonly sent: string;
  /** A client that asked for usage. */
  readonly asked: string;
  /** One that did not. */
  readonly unasked: string;
}

const delta = fc.constantFrom(
  '[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]',
  '[{"index":0,"delta":{"content":"\\n\\nGrüße 🌍"}}]',
  '[ {"index":0, "delta":{ "tool_calls":[{"index":0,"function":{"arguments":"\\"usage\\":null"}}] } } ]',
  '[{"index":0,"delta":{},"finish_reason":"stop","usage":null}]',
);

function event(newline: string, text: string): string {
  return `data: ${text}${newline}${newline}`;
}

/**
 * Chunks have `"usage":null`, without spaces around the commas, because either of two commas may be
 * removed.
 */
function chunkEvent(newline: string): fc.Arbitrary<StreamEvent> {
  return fc
    .record({
      model: vendorName,
      delta,
      unknown: unknownMembers,
      hasNull: fc.boolean(),
      gaps: spacing,
    })
    .chain((parts) =>
      shuffled(
        fc.constant<MemberText[]>(
          withModel(parts.model, [
            ['"choices"', parts.delta],
            ...parts.unknown.filter(([name]) => !name.startsWith('"usage"')),
            ...(parts.hasNull ? [['"usage"', "null"] as const] : []),
          ]),
        ),
      ).map((list) => ({ ...parts, list })),
    )
    .map(({ list, gaps, hasNull }) => {
      const used = hasNull
        ? { ...gaps, open: "", comma: "", close: "", around: "" }
        : { ...gaps, around: "" };
      const singleLine = (text: string): string => text.replace(/[\r\n]/g, " ");
      const text = (which: readonly MemberText[]): string =>
        event(newline, singleLine(objectText(which, used)));
      const shown = restored(list);
      return {
        sent: text(list),
        asked: text(shown),
        unasked: text(shown.filter(([name]) => name !== '"usage"')),
      };
    });
}

function streamEvents(newline: string): fc.Arbitrary<StreamEvent[]> {
  const comment = `: comment${newline}${newline}`;
  const other = fc.constantFrom<StreamEvent[]>(
    [],
    [{ sent: comment, asked: comment, unasked: comment }],
  );
  const last = event(newline, `{"choices":[],"model":"vendor-model","usage":${usage}}`);
  const done = event(newline, "[DONE]");
  const tail: StreamEvent[] = [
    { sent: last, asked: last.replace("vendor-model", publicModel), unasked: "" },
    { sent: done, asked: done, unasked: done },
  ];
  return fc
    .array(fc.tuple(other, chunkEvent(newline)), { minLength: 1, maxLength: 6 })
    .map((list) => [...list.flatMap(([comments, chunk]) => [...comments, chunk]), ...tail]);
}

it("stream: only the model's name and usage that was not asked for, however it is cut", async () => {
  const streams = fc.constantFrom("\n", "\r\n").chain((newline) => streamEvents(newline));
  const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(streams, cuts, fc.boolean(), async (events, sizes, isAsked) => {
      const sent = Buffer.from(events.map((each) => each.sent).join(""));
      fixture.upstream.script(byteStream(cut(sent, sizes)));
      const reply = await fixture.chat({
        model: publicModel,
        messages: [{ role: "user", content: "x" }],
        stream: true,
        ...(isAsked && { stream_options: { include_usage: true } }),
      });
      const expected = events.map((each) => (isAsked ? each.asked : each.unasked)).join("");
      expect(reply.body.toString()).toBe(expected);
    }),
    runs,
  );
});

/** Pieces of the given sizes, in turn; so a piece ends inside characters, names and line ends. */
function cut(all: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, i = 0; at < all.length; i++) {
    const size = sizes[i % sizes.length] ?? all.length;
    pieces.push(all.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

it("any JSON value survives in an unused place", async () => {
  await fc.assert(
    fc.asyncProperty(jsonText, space, async (value, gap) => {
      const body = `{"model":"${publicModel}","messages":[{"role":"user","content":"x"}],"x_any":${gap}${value}${gap}}`;
      const { status } = await fixture.send("/v1/chat/completions", { body });
      if (isRepeated(body, status)) return;
      const got = fixture.upstream.last().body.toString();
      expect(got).toBe(body.replace(publicModel, "vendor-model"));
    }),
    runs,
  );
});
