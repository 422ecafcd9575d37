/** The rules that requests keep are declared if they can be checked. */
import {
  getOption,
  hasOption,
  ScalarType,
  type DescField,
  type DescMessage,
} from "@bufbuild/protobuf";
import { FieldMaskSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { MoneySchema } from "../../gen/uas/type/v1/money_pb.ts";
import { field as fieldRules, type FieldRules } from "../../gen/uas/validate/v1/validate_pb.ts";
import { findMethods } from "./services.ts";

/** All messages that requests consist of. */
async function requestMessages(): Promise<readonly DescMessage[]> {
  const found = new Set<DescMessage>();
  const add = (message: DescMessage): void => {
    if (found.has(message)) return;
    found.add(message);
    for (const field of message.fields) if (field.message) add(field.message);
  };
  for (const { method } of await findMethods()) add(method.input);
  return [...found];
}

/** Which rules a field can have. */
function kindOf(field: DescField): FieldRules["type"]["case"] {
  if (field.fieldKind === "list") return "list";
  if (field.fieldKind === "enum") return "enum";
  if (field.fieldKind === "scalar") return field.scalar === ScalarType.STRING ? "string" : "int";
  if (field.message?.typeName === MoneySchema.typeName) return "money";
  if (field.message?.typeName === TimestampSchema.typeName) return "time";
  return field.message?.typeName === FieldMaskSchema.typeName ? "mask" : undefined;
}

const scalars: readonly unknown[] = [ScalarType.STRING, ScalarType.INT32];

test("validation rules stand on fields of their type", async () => {
  let count = 0;
  for (const { fields } of await requestMessages()) {
    for (const field of fields.filter((each) => hasOption(each, fieldRules))) {
      count += 1;
      const { case: given } = getOption(field, fieldRules).type;
      if (given !== undefined) expect(given, field.toString()).toBe(kindOf(field));
      if (field.fieldKind === "scalar") expect(scalars).toContain(field.scalar);
    }
  }
  expect(count).toBeGreaterThan(100);
});

test("update masks name members of the resource beside them", async () => {
  const masked = (await findMethods()).filter(({ name }) => /\/Update/.test(name));
  expect(masked.length).toBeGreaterThan(2);
  for (const { name, method } of masked) {
    const mask = method.input.fields.find((field) => kindOf(field) === "mask");
    const resource = method.input.fields.find((field) => field !== mask)?.message;
    const rules = mask && getOption(mask, fieldRules);
    // Users change themselves: without a session, that error precedes any about the request.
    expect(rules?.required, name).toBe(name !== "account.v1.UserService/UpdateUser");
    const paths = rules?.type.case === "mask" ? rules.type.value.paths : [];
    expect(paths.length, name).toBeGreaterThan(0);
    expect(resource?.fields.map((field) => field.name)).toEqual(expect.arrayContaining(paths));
  }
});

/**
 * Lists that answer whole: of ids that the request names, and of a style whose pages are its own.
 */
const withoutPages = [
  "billing.v1.BillingService/ListBalances",
  "inference.v1.ResponseService/ListInputItems",
];

test("every list has pages, and refuses a negative size", async () => {
  const lists = (await findMethods()).filter(({ name }) => /\/List/.test(name));
  expect(lists.length).toBeGreaterThan(10);
  for (const { name, method } of lists.filter((each) => !withoutPages.includes(each.name))) {
    const size = method.input.fields.find((field) => field.name === "page_size");
    const names = [...method.input.fields, ...method.output.fields].map((field) => field.name);
    expect(names, name).toEqual(expect.arrayContaining(["page_token", "next_page_token"]));
    const rules = size && getOption(size, fieldRules).type;
    expect(rules?.case === "int" && rules.value.min, name).toBe(0);
  }
});
