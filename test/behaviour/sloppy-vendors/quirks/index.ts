/** All quirks, by the style of the vendor. */
import { byteQuirks } from "./bytes.ts";
import { chatQuirks } from "./chat.ts";
import { geminiQuirks } from "./gemini.ts";
import { messagesQuirks } from "./messages.ts";
import type { QuirkTable } from "./quirk.ts";
import { responsesQuirks } from "./responses.ts";

export type { Quirk } from "./quirk.ts";

/** The quirks that vendors of each style show. */
export const quirks: QuirkTable = {
  chat: [...chatQuirks, ...byteQuirks],
  responses: [...responsesQuirks, ...byteQuirks],
  messages: [...messagesQuirks, ...byteQuirks],
  gemini: [...geminiQuirks, ...byteQuirks],
};
