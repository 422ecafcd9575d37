/** Request messages of the contract as JSON Schema, with their rules and comments. */
import { type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { StructSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { field as fieldRules, type FieldRules } from "../../gen/uas/validate/v1/validate_pb.ts";
import { deprecationOf } from "../../src/contract/deprecation.ts";
import type { Comments } from "../../src/contract/comments.ts";
import type { JsonPart } from "./replies.ts";

/** The schema of a message: its fields by their names in JSON. Unknown members are refused. */
export function messageSchema(fields: readonly DescField[], comments: Comments): JsonPart {
  const required = fields.filter(isRequired).map(({ jsonName }) => jsonName);
  return {
    type: "object",
    properties: Object.fromEntries(
      fields.map((each) => [each.jsonName, fieldSchema(each, comments)]),
    ),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
}

/** The schema of a field, with its comment. */
export function fieldSchema(field: DescField, comments: Comments): JsonPart {
  const description = comments.get(`${field.parent.typeName}.${field.name}`);
  const announced = deprecationOf(field) && { deprecated: true };
  return { ...valueSchema(field, comments), ...(description && { description }), ...announced };
}

/** Whether a request must have the field. */
export function isRequired(field: DescField): boolean {
  return getOption(field, fieldRules).required;
}

function valueSchema(field: DescField, comments: Comments): JsonPart {
  const rules: FieldRules = getOption(field, fieldRules);
  switch (field.fieldKind) {
    case "scalar":
      return { ...scalarSchema(field.scalar), ...rulesSchema(rules) };
    case "enum":
      return { enum: field.enum.values.slice(1).map(({ localName }) => localName.toLowerCase()) };
    case "message":
      return nestedSchema(field.message, comments);
    case "list":
      return { type: "array", items: field.message ? nestedSchema(field.message, comments) : {} };
    case "map":
    default:
      return { type: "object" };
  }
}

function nestedSchema(message: DescMessage, comments: Comments): JsonPart {
  if (message.typeName === StructSchema.typeName) return { type: "object" };
  if (message.typeName === TimestampSchema.typeName) return { type: "string", format: "date-time" };
  return messageSchema(message.fields, comments);
}

function scalarSchema(scalar: ScalarType): JsonPart {
  switch (scalar) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return { type: "number" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    // 64 bits do not fit a JSON number.
    case ScalarType.INT64:
    case ScalarType.UINT64:
    case ScalarType.SINT64:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return { type: "string", pattern: "^-?[0-9]+$" };
    case ScalarType.INT32:
    case ScalarType.UINT32:
    case ScalarType.SINT32:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
    default:
      return { type: "integer" };
  }
}

function rulesSchema({ type }: FieldRules): JsonPart {
  if (type.case === "string") {
    const { minChars, maxChars, in: words } = type.value;
    return {
      ...(minChars > 0 && { minLength: minChars }),
      ...(maxChars > 0 && { maxLength: maxChars }),
      ...(words.length > 0 && { enum: words }),
    };
  }
  if (type.case !== "int") return {};
  const { min, max } = type.value;
  return {
    ...(min !== undefined && { minimum: min }),
    ...(max !== undefined && { maximum: max }),
  };
}
