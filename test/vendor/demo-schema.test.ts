import { Ajv2020 } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { DemoRequestError } from "../../src/provider/demo/request.ts";
import { valueOf } from "../../src/provider/demo/schema-value.ts";

const ajv = new Ajv2020({ strict: false, validateFormats: false });
const source = { text: "Is it 42 degrees in Paris?", param: "schema" };

function expectValid(schema: object): void {
  const value = valueOf(schema, source);
  const validate = ajv.compile(schema);
  expect(validate(value), `${JSON.stringify(value)}: ${JSON.stringify(validate.errors)}`).toBe(
    true,
  );
}

/** A schema of the kind that structured output is asked for with. */
const schemas = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: "small", maxDepth: 4 },
    fc.constant({ type: "boolean" }),
    fc.constant({ type: ["string", "null"] }),
    fc.constant({ type: "null" }),
    fc.record({
      enum: fc.array(fc.oneof(fc.string(), fc.integer()), { minLength: 1, maxLength: 4 }),
    }),
    fc.record({ const: fc.oneof(fc.string(), fc.integer(), fc.constant(null)) }),
    fc.tuple(fc.nat(40), fc.nat(40)).map(([minLength, more]) => ({
      ...{ type: "string", minLength, maxLength: minLength + more },
    })),
    fc.tuple(fc.integer({ min: -500, max: 500 }), fc.nat(500)).map(([minimum, more]) => ({
      ...{ type: "integer", minimum, maximum: minimum + more },
    })),
    fc
      .tuple(fc.integer({ min: -500, max: 500 }), fc.integer({ min: 1, max: 9 }))
      .map(([exclusiveMinimum, more]) => ({
        ...{ type: "number", exclusiveMinimum, exclusiveMaximum: exclusiveMinimum + more },
      })),
    fc.tuple(tie("any"), fc.nat(3), fc.nat(3)).map(([items, minItems, more]) => ({
      ...{ type: "array", items, minItems, maxItems: minItems + more },
    })),
    fc.array(tie("any"), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    fc
      .dictionary(fc.stringMatching(/^[a-z]{1,6}$/), tie("any"), { maxKeys: 4 })
      .chain((properties) =>
        fc.subarray(Object.keys(properties)).map((required) => ({
          ...{ type: "object", properties, required, additionalProperties: false },
        })),
      ),
  ),
}));

test("a value for any usual schema is accepted by it", () => {
  fc.assert(
    fc.property(schemas.any, (schema) => expectValid(schema as object)),
    { numRuns: 500 },
  );
});

describe("a value is accepted by", () => {
  it.each([
    [
      "a schema with references",
      {
        $defs: { city: { type: "string" } },
        type: "object",
        properties: { a: { $ref: "#/$defs/city" } },
        required: ["a"],
      },
    ],
    [
      "a tree of itself",
      {
        type: "object",
        properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#" } } },
        required: ["name", "children"],
        additionalProperties: false,
      },
    ],
    [
      "parts of which all count",
      {
        allOf: [
          { type: "object", properties: { a: { type: "integer" } }, required: ["a"] },
          { properties: { b: { const: 2 } }, required: ["b"] },
        ],
      },
    ],
    [
      "a tuple",
      {
        type: "array",
        prefixItems: [{ type: "string" }, { type: "integer" }],
        minItems: 3,
        items: { type: "boolean" },
      },
    ],
    ["multiples", { type: "integer", multipleOf: 7, minimum: 50 }],
    ["a date", { type: "string", format: "date" }],
    ["a pattern", { type: "string", pattern: "^[A-Z]{3}-\\d{2,4}(?:-x|-y)?$" }],
    ["a pattern of exclusions", { type: "string", pattern: "^[^a]+@[a-z0-9]+\\.(com|org)$" }],
    ["no rules at all", {}],
  ])("a value is accepted by %s", (_name, schema) => {
    expectValid(schema);
  });
});

it.each([
  ["a pattern that looks around", { type: "string", pattern: "^(?=a).*$" }],
  [
    "a required tree without an end",
    { type: "object", properties: { next: { $ref: "#" } }, required: ["next"] },
  ],
  ["bounds without a number", { type: "integer", minimum: 5, maximum: 4 }],
  ["a reference to nothing", { $ref: "#/$defs/none" }],
])("the demo vendor refuses %s instead of a wrong value", (_name, schema) => {
  expect(() => valueOf(schema, source)).toThrow(DemoRequestError);
});

test("a pattern that takes years to search is answered at once", () => {
  const schema = { type: "string", pattern: "^(a+)+$" };
  expect(valueOf(schema, source)).toBe("a");
});
