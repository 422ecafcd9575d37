/** Long texts cross from style to style as the bytes that the client wrote. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import { readOutline } from "../../../../src/dialect/body-members.ts";
import { textDialects, vendorDialects } from "../../../../src/dialect/index.ts";
import { jsonBody, parseBody } from "../../../../src/wire/json/long-texts.ts";
import { type Outline, scanObject } from "../../../../src/wire/json/outline.ts";

/**
 * As a client may write it: escapes that need not be there, letters of all lengths, halves of
 * pairs.
 */
const written = String.raw`He said: \"caf\u00e9 — \/\ud83d\ude00\/ \u0000 \ud800\"\n`.repeat(200);
const long = JSON.parse(`"${written}"`) as string;

const name = fc.constantFrom("a", "7", "3", "__proto__", "\u0000", "\u00000");
const text = fc.oneof(
  fc.string(),
  fc.constantFrom("\u0000", "\u00000", '"\u0000', `x${long}`, long, "y".repeat(5_000)),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    text,
    fc.constantFrom(1, null, true),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.array(fc.tuple(name, tie("value")), { maxLength: 3 }).map(objectOf),
  ),
}));

/** With names that stand twice, which no object of JavaScript has. */
class Twice {
  readonly members: readonly (readonly [string, unknown])[];

  constructor(members: readonly (readonly [string, unknown])[]) {
    this.members = members;
  }
}

function objectOf(members: readonly (readonly [string, unknown])[]): Twice {
  return new Twice(members);
}

function write(each: unknown): string {
  if (Array.isArray(each)) return `[${each.map(write).join(",")}]`;
  if (!(each instanceof Twice)) return JSON.stringify(each);
  return `{${each.members.map(([key, inner]) => `${JSON.stringify(key)}:${write(inner)}`).join(",")}}`;
}

function parse(json: string): ReturnType<typeof parseBody> {
  const bytes = Buffer.from(json);
  return parseBody(bytes, readOutline(bytes).longTexts);
}

describe("a body whose long texts are parsed apart", () => {
  it("is what JSON.parse makes of it, and is written as JSON.stringify would", () => {
    let apart = 0;
    fc.assert(
      fc.property(value, value, (one, other) => {
        const json = `{"x":"${written}","one":${write(one)},"other":${write(other)}}`;
        const { record, texts } = parse(json);
        expect(JSON.stringify(record)).toBe(JSON.stringify(JSON.parse(json)));
        const again = jsonBody({ record, own: long }, texts).body.toString();
        expect(JSON.parse(again)).toEqual(JSON.parse(JSON.stringify({ record, own: long })));
        if (texts !== undefined) apart++;
      }),
      { numRuns: 500 },
    );
    expect(apart).toBeGreaterThan(50);
  });

  it("keeps the bytes of a text as they were written", () => {
    const { record, texts } = parse(`{"x":"${written}"}`);
    expect(jsonBody({ y: [record["x"], "z"] }, texts).body.toString()).toBe(
      `{"y":["${written}","z"]}`,
    );
  });

  it("is parsed whole where long texts are but a small part of it", () => {
    const many = Array.from({ length: 500 }, () => "a text of a few words");
    expect(parse(`{"x":"${written}","many":${JSON.stringify(many)}}`).texts).toBeUndefined();
  });
});

/** Returns the parts of an outline that guards and holds use. */
function toldOf({ members, nested, weight, media, end }: Outline): unknown {
  const names = ["text", "parts", "content", "file_id", "container"];
  return { members, weight, media, end, nested: names.filter((each) => nested.mayHave(each)) };
}

describe("a request with a long text, asked from a vendor of another style,", () => {
  const messages = [
    { role: "user", content: long },
    { role: "assistant", content: "yes" },
    { role: "user", content: [{ type: "text", text: long }] },
    { role: "user", content: [{ type: "text", text: "and é" }] },
  ];
  const bodies = new Map<Dialect, object>([
    [Dialect.CHAT_COMPLETIONS, { model: "m", messages }],
    [Dialect.MESSAGES, { model: "m", max_tokens: 9, system: long, messages }],
    [Dialect.RESPONSES, { model: "m", instructions: long, input: messages }],
  ]);
  const rows = [...bodies].flatMap(([dialect, body]) =>
    Object.values(vendorDialects).map((to) => [dialect, to.word, body, to] as const),
  );

  it.each(rows)(
    "says the same as if it had been parsed whole: %s to %s",
    (dialect, _, body, to) => {
      const from = textDialects.get(dialect);
      const bytes = Buffer.from(
        JSON.stringify(body, (_name, each: unknown) => (each === long ? "@" : each)).replaceAll(
          '"@"',
          `"${written}"`,
        ),
      );
      // Parts of responses have other names.
      const sent =
        dialect === Dialect.RESPONSES
          ? Buffer.from(bytes.toString().replaceAll('"type":"text"', '"type":"input_text"'))
          : bytes;
      const outline = readOutline(sent);
      expect(outline.longTexts).toHaveLength(dialect === Dialect.CHAT_COMPLETIONS ? 2 : 3);
      const encoded = [outline, { ...outline, longTexts: [] }].map((known) => {
        const generation = from?.decodeRequest(sent, { platformAliases: false, outline: known });
        if (generation === undefined) throw new Error("no such style");
        const target = { model: "v", stream: false, maxOutputTokens: 9, sourceDialect: dialect };
        const made = to.encodeRequest(generation, target);
        const scanned = scanObject(made.body);
        expect(toldOf(made.outline())).toEqual(toldOf(scanned));
        return made.body.toString();
      });
      expect(encoded[0]).toContain(written);
      expect(encoded[1]).not.toContain(written);
      expect(JSON.parse(encoded[0] ?? "")).toEqual(JSON.parse(encoded[1] ?? ""));
    },
  );
});
