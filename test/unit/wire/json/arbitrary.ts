/** JSON as callers and vendors may spell it, and as JSON.stringify never would. */
import * as fc from "fast-check";

/** A value as its tokens, so that white space can stand between them. */
type Tokens = readonly string[];

const number = fc.oneof(
  fc.constantFrom(
    ...["2512292042121000001", "-9007199254740993", "1.10", "1e2", "1E400", "-0", "0.0", "-1e-400"],
    ...[
      "123456789012345678901234567890",
      "1.7976931348623157e308",
      "5E+3",
      "0.1000000000000000055",
    ],
  ),
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
);

const text = fc.oneof(
  fc.constantFrom(
    ...[String.raw`"caf\u00e9"`, String.raw`"\/a\/"`, String.raw`"\ud83d\ude00 😀"`, '""'],
    ...[
      String.raw`"\u0041\t\u0009"`,
      String.raw`"\ud800"`,
      String.raw`"a\\\"b{[,]}"`,
      '"{\\"x\\":1.10}"',
    ],
  ),
  fc.string().map((value) => JSON.stringify(value)),
);

const name = fc.oneof(
  fc.constantFrom('"7"', '"1"', '"__proto__"', '"type"', '"id"', String.raw`"\u0069d"`, '"input"'),
  fc.string({ maxLength: 4 }).map((value) => JSON.stringify(value)),
);

const tied = fc.letrec<{ value: Tokens; object: Tokens; list: Tokens }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.oneof(number, text, fc.constantFrom("true", "false", "null")).map((token) => [token]),
    tie("object"),
    tie("list"),
  ),
  // Names may be repeated.
  object: fc
    .array(fc.tuple(name, tie("value")), { maxLength: 4 })
    .map((members) => [
      "{",
      ...members.flatMap(([key, value], at) => [...(at > 0 ? [","] : []), key, ":", ...value]),
      "}",
    ]),
  list: fc
    .array(tie("value"), { maxLength: 4 })
    .map((all) => ["[", ...all.flatMap((value, at) => [...(at > 0 ? [","] : []), ...value]), "]"]),
}));

/** The same JSON with white space between its tokens, and without. */
export interface SpelledJson {
  readonly spaced: string;
  readonly tight: string;
}

function spelled(tokens: Tokens): fc.Arbitrary<SpelledJson> {
  const space = fc.constantFrom("", "", " ", "\n", "\r\n\t ");
  return fc.array(space, { minLength: tokens.length, maxLength: tokens.length }).map((spaces) => ({
    tight: tokens.join(""),
    spaced: tokens.map((token, at) => token + (spaces[at] ?? "")).join(""),
  }));
}

/** Any JSON. */
export const anyJson = tied.value.chain(spelled);
/** A JSON object. */
export const anyObject = tied.object.chain(spelled);
