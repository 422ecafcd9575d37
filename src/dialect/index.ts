/** The dialects. A new one does not compile until it stands here. */
import { Dialect as DialectEnum } from "../../gen/uas/http/v1/http_pb.ts";
import { chatCompletions } from "./chat-completions.ts";
import type { Dialect, TextDialect } from "./dialect.ts";
import { platform } from "./platform.ts";

/** A dialect that exists: all but UNSPECIFIED. */
export type DialectId = Exclude<
  (typeof DialectEnum)[keyof typeof DialectEnum],
  typeof DialectEnum.UNSPECIFIED
>;

export const dialects: Readonly<Record<DialectId, Dialect>> = {
  [DialectEnum.CHAT_COMPLETIONS]: chatCompletions,
  [DialectEnum.PLATFORM]: platform,
};

/** Those that can carry a text generation. */
export const textDialects: ReadonlyMap<DialectEnum, TextDialect> = new Map([
  [DialectEnum.CHAT_COMPLETIONS, chatCompletions],
]);
