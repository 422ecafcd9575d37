/** Refuses bodies with members that must not use the key of the operator. */
import { checkFiles, checkModeration, checkServiceTier, guardOf } from "../guard.ts";

const suspects = { members: ["moderation", "service_tier"], nested: ["file_id"] };

/** Checks a body of chat completions. */
export const guardChat = guardOf(suspects, (body) => {
  checkModeration(body);
  checkServiceTier(body["service_tier"]);
  checkFiles(body["messages"], "messages");
});
