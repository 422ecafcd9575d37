/** See {@link Guard}. */
import { guardOf, refuseDearer, refuseKept } from "../guard.ts";
import { recordAt, recordsAt, textAt } from "../json.ts";

/** Checks a body of Gemini's, which is always one of ours: callers know its members by other names. */
export const guardGemini = guardOf({ members: ["serviceTier"], nested: ["fileUri"] }, (body) => {
  if (body["serviceTier"] === "priority") {
    throw refuseDearer("service_tier", 'send "auto", "default" or "flex", or leave it out');
  }
  for (const content of recordsAt(body, "contents")) {
    for (const part of recordsAt(content, "parts")) {
      const uri = textAt(recordAt(part, "fileData") ?? {}, "fileUri");
      if (keptFile.test(uri)) throw refuseKept("url", "send the file itself, or a public address");
    }
  }
});

/** The addresses of files that were uploaded with the operator's key. */
const keptFile = /^(?:https?:\/\/[^/]*\bgenerativelanguage\.googleapis\.com\/|files\/)/i;
