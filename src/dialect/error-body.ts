import type { JsonObject } from "@bufbuild/protobuf";
import type { GatewayError } from "../errors.ts";

/** The error body that chat completions and platform JSON share: `{error:{message,type,code,param}}`. */
export function errorBody(error: GatewayError): JsonObject {
  const { type, word } = error.meaning;
  return { error: { message: error.message, type, code: word, param: error.param ?? null } };
}
