/** The registry of dialects. A new enum value does not compile without a row here. */
import { Dialect as DialectEnum } from "../../gen/uas/http/v1/http_pb.ts";
import { chatCompletions } from "./chat-completions/dialect.ts";
import type { Dialect, TextDialect, VendorDialect } from "./dialect.ts";
import { gemini } from "./gemini/dialect.ts";
import { messages } from "./messages/dialect.ts";
import { platform } from "./platform.ts";
import { rerank } from "./operations/rerank.ts";
import { responses } from "./responses/dialect.ts";

type Value<Name extends keyof typeof DialectEnum> = (typeof DialectEnum)[Name];

/** The dialects of routes: all but those only vendors speak. */
export type DialectId = Exclude<
  (typeof DialectEnum)[keyof typeof DialectEnum],
  Value<"UNSPECIFIED" | "GEMINI">
>;

/** A dialect in which vendors can generate text. */
export type VendorDialectId = Exclude<
  (typeof DialectEnum)[keyof typeof DialectEnum],
  Value<"UNSPECIFIED" | "PLATFORM" | "RERANK" | "RERANK_V2">
>;

export const dialects: Readonly<Record<DialectId, Dialect>> = {
  [DialectEnum.CHAT_COMPLETIONS]: chatCompletions,
  [DialectEnum.PLATFORM]: platform,
  [DialectEnum.RESPONSES]: responses,
  [DialectEnum.MESSAGES]: messages,
  [DialectEnum.RERANK]: rerank,
  [DialectEnum.RERANK_V2]: rerank,
};

/** The dialects for requests to vendors. */
export const vendorDialects: Readonly<Record<VendorDialectId, VendorDialect>> = {
  [DialectEnum.CHAT_COMPLETIONS]: chatCompletions,
  [DialectEnum.RESPONSES]: responses,
  [DialectEnum.MESSAGES]: messages,
  [DialectEnum.GEMINI]: gemini,
};

/** The dialects for clients' text generations. */
export const textDialects: ReadonlyMap<DialectEnum, TextDialect> = new Map([
  [DialectEnum.CHAT_COMPLETIONS, chatCompletions],
  [DialectEnum.RESPONSES, responses],
  [DialectEnum.MESSAGES, messages],
]);

/**
 * The parts of a wire style that a route needs. Requests in the styles of rerank have the headers
 * of chat completions.
 */
export function wireStyle(
  dialect: DialectEnum,
): Pick<TextDialect, "forwardedHeaders" | "keepAlive"> | undefined {
  const isRerank = dialect === DialectEnum.RERANK || dialect === DialectEnum.RERANK_V2;
  return isRerank ? chatCompletions : textDialects.get(dialect);
}
