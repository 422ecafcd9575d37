/** Request bodies that are the contract's own messages as JSON. */
import { type DescField, type DescMessage, type JsonObject, ScalarType } from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import type { FastifyRequest } from "fastify";
import { readOutline } from "../dialect/body-members.ts";
import { isRecord, type JsonRecord } from "../dialect/json.ts";
import { memberTwice } from "../dialect/json/member-twice.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { emptyBody } from "./errors.ts";

/** What {@link readJsonBody} needs. */
export interface JsonBodyOptions {
  readonly input: DescMessage;
  /** The fields that stand in the path, by their names in the contract. */
  readonly pathFields: ReadonlySet<string>;
}

/**
 * Reads the body of a request. Members have the contract's names in camelCase or in snake_case. Where the body can say
 * nothing that the path does not, it may be left out.
 *
 * @throws GatewayError INVALID_REQUEST, naming what is not known, stands twice or has another type
 */
export function readJsonBody(
  { body }: FastifyRequest,
  { input, pathFields }: JsonBodyOptions,
): JsonObject {
  const fields = input.fields.filter(({ name }) => !pathFields.has(name));
  if (!Buffer.isBuffer(body) || body.length === 0) {
    if (fields.length === 0) return {};
    throw emptyBody();
  }
  readOutline(body);
  const twice = memberTwice(body);
  if (twice !== undefined) throw invalid([twice.path], "stands twice in the body; send it once");
  const record = JSON.parse(body.toString("utf8")) as JsonObject;
  checkMembers(record, fields, "");
  return record;
}

/** Checks names and types as far as the contract's own reader would name neither. */
function checkMembers(record: JsonRecord, fields: readonly DescField[], path: string): void {
  const known = new Map(
    fields.flatMap((each) => [
      [each.jsonName, each],
      [each.name, each],
    ]),
  );
  const unknown = Object.keys(record).filter((name) => !known.has(name));
  if (unknown.length > 0) {
    const takes = fields.map(({ jsonName }) => path + jsonName).join(", ");
    const told = unknown.slice(0, namesMax).map((name) => path + name.slice(0, nameCharsMax));
    throw invalid(
      told,
      takes === "" ? "this body takes nothing" : `not known; the body takes ${takes}`,
    );
  }
  const seen = new Set<DescField>();
  for (const [name, value] of Object.entries(record)) {
    const field = known.get(name);
    if (field === undefined) continue;
    if (seen.has(field)) throw invalid([path + field.jsonName], "stands twice; send it once");
    seen.add(field);
    if (value !== null) checkValue(value, field, path);
  }
}

function checkValue(value: unknown, field: DescField, path: string): void {
  const name = path + field.jsonName;
  if (field.fieldKind === "scalar" && field.scalar === ScalarType.STRING) {
    if (typeof value !== "string") throw invalid([name], "must be a text");
    if (!value.isWellFormed()) throw invalid([name], "must be well-formed Unicode");
    if (value === "" && neverEmpty.has(`${field.parent.typeName}.${field.name}`)) {
      throw invalid([name], "must not be empty; leave it out where there is none");
    }
  }
  if (field.fieldKind !== "message") return;
  if (!isRecord(value)) throw invalid([name], "must be an object");
  const { message } = field;
  if (message.typeName === StructSchema.typeName) return;
  checkMembers(value, message.fields, `${name}.`);
}

/** Texts that promise something by being there: empty ones would promise nothing, and nobody would know. */
const neverEmpty = new Set(["uas.task.v1.SubmitTaskRequest.callback_id"]);

/** How many unknown names are told, and how much of each. */
const namesMax = 10;
const nameCharsMax = 64;

function invalid(names: readonly string[], rule: string): GatewayError {
  const [param = ""] = names;
  return new GatewayError(ErrorCode.INVALID_REQUEST, `${names.join(", ")}: ${rule}`, { param });
}
