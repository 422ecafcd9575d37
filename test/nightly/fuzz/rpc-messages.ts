/** Messages of any RPC, made from the contract: a new method is covered without a line here. */
import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromJson,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import type { Chance } from "./random.ts";
import type { Json } from "./shot.ts";

/** Values for fields of these names, so that messages reach existing things. */
export type KnownValues = Readonly<Record<string, string>>;

/** A message in proto-JSON that mostly fits. @param depth levels of messages below it */
export function makeMessage(
  { typeName, fields }: DescMessage,
  chance: Chance,
  { known, depth = 3 }: { readonly known: KnownValues; readonly depth?: number },
): Json {
  if (typeName === "google.protobuf.Timestamp") return "2026-11-22T10:00:00Z";
  if (typeName === "google.protobuf.Duration") return "3600s";
  if (typeName === "google.protobuf.FieldMask") return "name";
  if (typeName === "google.protobuf.Struct") return { a: [1, { b: null }] };
  if (typeName.startsWith("google.protobuf.")) return {};
  const isShown = (field: DescField): boolean => {
    if (field.oneof !== undefined && field.oneof !== chosen.get(field.oneof.name)) return false;
    return chance.is(depth > 0 ? 0.6 : 0.2);
  };
  const chosen = new Map<string, DescField["oneof"]>();
  const message: { [name: string]: Json } = {};
  for (const field of fields) {
    // One member of a choice is enough, and which one is by chance.
    if (field.oneof !== undefined && !chosen.has(field.oneof.name) && chance.is(0.5)) {
      chosen.set(field.oneof.name, field.oneof);
      message[field.jsonName] = makeField(field, chance, { known, depth: depth - 1 });
    } else if (field.oneof === undefined && isShown(field)) {
      message[field.jsonName] = makeField(field, chance, { known, depth: depth - 1 });
    }
  }
  return message;
}

/** The same message in the binary form; an empty one if it does not fit. */
export function encodeMessage({ input }: DescMethod, json: Json): Buffer {
  try {
    return Buffer.from(toBinary(input, fromJson(input, json)));
  } catch {
    return Buffer.alloc(0);
  }
}

interface Making {
  readonly known: KnownValues;
  readonly depth: number;
}

function makeField(field: DescField, chance: Chance, making: Making): Json {
  if (field.fieldKind === "list") {
    return Array.from({ length: chance.below(3) }, () => makeValue(field, chance, making));
  }
  if (field.fieldKind === "map") {
    return { [field.mapKey === ScalarType.STRING ? "key" : "1"]: makeValue(field, chance, making) };
  }
  return makeValue(field, chance, making);
}

function makeValue(field: DescField, chance: Chance, making: Making): Json {
  if (field.message !== undefined) {
    return making.depth < 0 ? {} : makeMessage(field.message, chance, making);
  }
  if (field.enum !== undefined) return chooseEnum(field.enum, chance);
  const known = making.known[field.name];
  if (known !== undefined && chance.is(0.9)) return known;
  switch (field.scalar) {
    case ScalarType.BOOL:
      return chance.is(0.5);
    case ScalarType.STRING:
      return chance.of(["", "x", "USD", "m-chat", "a b", "0", "x".repeat(200)]);
    case ScalarType.BYTES:
      return chance.bytes(chance.below(40)).toString("base64");
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return chance.of([0, 1.5, -1, 1e30]);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return chance.of(["0", "1", "1000000", "-1", "9223372036854775807"]);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return chance.of(["0", "1", "1000000", "18446744073709551615"]);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return chance.of([0, 1, 100, 4_294_967_295]);
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
    case undefined:
    default:
      return chance.of([0, 1, 100, -1, 2_147_483_647]);
  }
}

function chooseEnum({ values }: DescEnum, chance: Chance): Json {
  return chance.is(0.1) ? 77 : chance.of(values).name;
}
