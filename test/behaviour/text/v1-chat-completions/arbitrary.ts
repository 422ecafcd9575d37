/** Random bodies as text: any spacing, any spelling of numbers and strings, unknown members. */
import * as fc from "fast-check";

/** JSON whitespace, mostly none. */
export const space = fc.constantFrom("", "", "", " ", "\n", "\t", "\r\n ", "  ");

/** A name that the gateway and the simulated vendor do not read. */
const unknownName = fc
  .tuple(
    fc.constantFrom("x_", "vendor", "mod", "usage_", "ü", "\\u00e9", "m\\u006fdels"),
    fc.nat(9),
  )
  .map(([stem, digit]) => `"${stem}${digit}"`);

const scalar = fc.constantFrom(
  "null",
  "true",
  "false",
  "0",
  "-0",
  "2.50",
  "1e400",
  "1E+2",
  "9223372036854775807",
  "0.1000000000000000055511151231257827",
  '""',
  '"plain"',
  '"Grüße 🌍"',
  '"\\u0048\\uD83C\\uDF0D\\/\\n\\t\\"\\\\"',
  '"data: [DONE]"',
  '"\\n\\n"',
  '"model"',
  '"}],"',
);

const { value } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    scalar,
    tie("list"),
    tie("object"),
  ),
  list: fc
    .tuple(fc.array(tie("value"), { maxLength: 3 }), space)
    .map(([items, gap]) => `[${gap}${items.join(`${gap},${gap}`)}${gap}]`),
  object: fc
    .tuple(fc.array(fc.tuple(nestedName(), tie("value")), { maxLength: 3 }), space)
    .map(
      ([members, gap]) =>
        `{${gap}${members.map((pair) => pair.join(`${gap}:${gap}`)).join(`,${gap}`)}}`,
    ),
}));

/** Below the top level, the names that matter at the top are ordinary names. */
function nestedName(): fc.Arbitrary<string> {
  return fc.oneof(
    unknownName,
    fc.constantFrom('"model"', '"usage"', '"stream"', '"choices"', '"error"'),
  );
}

/** Any JSON value as text. */
export const jsonText: fc.Arbitrary<string> = value;

/** A member as text: name and value. */
export type MemberText = readonly [name: string, value: string];

/** Unknown members; names may repeat. */
export const unknownMembers: fc.Arbitrary<MemberText[]> = fc.array(fc.tuple(unknownName, value), {
  maxLength: 4,
});

/** One spacing for a whole object. */
export interface Spacing {
  readonly open: string;
  readonly colon: string;
  readonly comma: string;
  readonly close: string;
  readonly around: string;
}

export const spacing: fc.Arbitrary<Spacing> = fc.record({
  open: space,
  colon: space,
  comma: space,
  close: space,
  around: space,
});

/** Puts an object together. */
export function objectText(members: readonly MemberText[], gaps: Spacing): string {
  const { open, colon, comma, close, around } = gaps;
  const texts = members.map(([name, text]) => `${name}${colon}:${colon}${text}`);
  return `${around}{${open}${texts.join(`${comma},${comma}`)}${close}}${around}`;
}

/** The same elements in any order. */
export function shuffled<T>(items: fc.Arbitrary<T[]>): fc.Arbitrary<T[]> {
  return items.chain((list) => fc.shuffledSubarray(list, { minLength: list.length }));
}
