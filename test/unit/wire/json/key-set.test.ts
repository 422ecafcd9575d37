import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readOutline } from "../../../../src/dialect/body-members.ts";
import { KeySet, placeOfBytes } from "../../../../src/wire/json/duplicate-member.ts";

/** Names that guards search below the top level. */
const suspects = [
  "comparison_response_id",
  "container",
  "container_id",
  "file_id",
  "file_ids",
  "fileUri",
  "tools",
  "vector_store_ids",
];

/** Names in most bodies. */
const usual =
  "role content type text id name input arguments function call_id output tool_calls tool_call_id tool_use_id image_url url detail status annotations logprobs summary encrypted_content description parameters properties required additionalProperties input_schema cache_control source media_type data thinking signature is_error title items enum format default strict effort include_usage schema json_schema path command";

function namesOf(names: readonly string[]): KeySet {
  const set = new KeySet();
  for (const name of names) set.add(placeOfBytes(Buffer.from(`-${name}-`), 1, name.length + 1));
  return set;
}

describe("R-VND-3: the names in a body that a guard looks for", () => {
  it("are never missed, at any depth and however they are written", () => {
    const name = fc.constantFrom(...suspects);
    const spelled = fc
      .tuple(name, fc.nat(30), fc.boolean())
      .map(([word, at, isEscaped]) => ({ word, text: isEscaped ? escaped(word, at) : word }));
    const depth = fc.integer({ min: 1, max: 50 });
    fc.assert(
      fc.property(
        spelled,
        depth,
        fc.jsonValue({ maxDepth: 5 }),
        ({ word, text }, levels, beside) => {
          const inner = `{"x":${JSON.stringify(beside)},"${text}":1}`;
          const body = `{"a":${"[".repeat(levels)}${inner}${"]".repeat(levels)}}`;
          expect(readOutline(Buffer.from(body)).nested.mayHave(word)).toBe(true);
        },
      ),
    );
  });

  it("are not taken for those that stand in most bodies, which would then be parsed", () => {
    const set = namesOf(usual.split(" "));
    expect(suspects.filter((name) => set.mayHave(name))).toEqual([]);
  });

  it("do not count where they are texts, or stand at the top level", () => {
    const body = { file_id: 1, messages: [{ content: '"file_id":1, "container"' }] };
    const { nested } = readOutline(Buffer.from(JSON.stringify(body)));
    expect(suspects.filter((name) => nested.mayHave(name))).toEqual([]);
  });
});

/** One letter of a name by its number. */
function escaped(name: string, at: number): string {
  const place = at % name.length;
  const number = name.charCodeAt(place).toString(16).padStart(4, "0");
  return `${name.slice(0, place)}\\u${number}${name.slice(place + 1)}`;
}
