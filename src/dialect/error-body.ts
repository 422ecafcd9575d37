import type { JsonObject } from "@bufbuild/protobuf";
import type { GatewayError } from "../errors.ts";

/** The error body that chat completions, responses and platform JSON share:
 * `{error:{message,type,code,param,details?}}`. */
export function errorBody(error: GatewayError): JsonObject {
  const { type, word } = error.meaning;
  const { details } = error;
  const told = { message: error.message, type, code: word, param: error.param ?? null };
  return { error: Object.keys(details).length === 0 ? told : { ...told, details: { ...details } } };
}
