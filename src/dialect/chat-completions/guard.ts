/** See {@link Guard}. */
import { checkFiles, checkModeration, checkServiceTier, guardOf } from "../guard.ts";

/** Checks a body of chat completions. */
export const guardChat = guardOf(["moderation", "service_tier", "file_id"], (body) => {
  checkModeration(body);
  checkServiceTier(body["service_tier"]);
  checkFiles(body["messages"], "messages");
});
