/** Converts JSON fields to the request of an RPC. Errors use the caller's spelling of a field. */
import {
  fromJson,
  ScalarType,
  type DescField,
  type DescMessage,
  type DescMethod,
  type JsonObject,
} from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { createContextValues, type ContextValues } from "@connectrpc/connect";
import type { FastifyRequest } from "fastify";
import { callerKey, requestIdKey } from "../../core/caller.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";

/**
 * Builds the request. @throws GatewayError INVALID_REQUEST, naming the parameter and the expected
 * value
 */
export function readInput(method: DescMethod, fields: JsonObject) {
  const { input } = method;
  try {
    return fromJson(input, fields, { ignoreUnknownFields: true });
  } catch (cause) {
    const [param, rule] = wrongIn(input, fields);
    throw new GatewayError(ErrorCode.INVALID_REQUEST, `${param}: ${rule}`, { param, cause });
  }
}

/** The first field that is invalid by itself. */
function wrongIn(input: DescMessage, fields: JsonObject): readonly [name: string, rule: string] {
  for (const [name, value] of Object.entries(fields)) {
    try {
      fromJson(input, { [name]: value }, { ignoreUnknownFields: true });
    } catch {
      const field = input.fields.find((each) => each.jsonName === name || each.name === name);
      const isTwice = Array.isArray(value) && field?.fieldKind !== "list";
      return [name, isTwice ? "occurs twice; send it once" : expectedOf(field)];
    }
  }
  // Each field is valid alone, so two of them are the same field under two names.
  return [Object.keys(fields).join(", "), "send each parameter once"];
}

function expectedOf(field: DescField | undefined): string {
  if (field?.fieldKind === "scalar") {
    return scalarTexts.get(field.scalar) ?? "must be a whole number";
  }
  if (field?.fieldKind === "enum") {
    return `must be one of ${field.enum.values.map(({ name }) => name).join(", ")}`;
  }
  if (field?.fieldKind === "list") return "must be a list";
  if (field?.fieldKind !== "message") return "is not valid";
  const isTime = field.message.typeName === TimestampSchema.typeName;
  return isTime ? "must be a time such as 2030-01-31T09:00:00Z" : "must be an object";
}

/** All other scalar types are whole numbers. */
const scalarTexts: ReadonlyMap<ScalarType, string> = new Map([
  [ScalarType.STRING, "must be a text"],
  [ScalarType.BOOL, "must be true or false"],
  [ScalarType.BYTES, "must be Base64"],
  [ScalarType.DOUBLE, "must be a number"],
  [ScalarType.FLOAT, "must be a number"],
]);

/** The caller of an RPC. */
interface RpcCaller {
  readonly values: ContextValues;
  /** Read instead of the context values by a service in another process. */
  readonly header: Readonly<Record<string, string>>;
}

/** The caller of an authenticated request. Routes that omit the request id pass none. */
export function rpcCaller({ state }: FastifyRequest): RpcCaller {
  if (state === undefined) throw new Error("the request was not authenticated");
  const { caller, key, requestId } = state;
  const values = createContextValues().set(callerKey, caller);
  const authorization = `Bearer ${key}`;
  if (requestId === "") return { values, header: { authorization } };
  values.set(requestIdKey, requestId);
  return { values, header: { authorization, "x-request-id": requestId } };
}
