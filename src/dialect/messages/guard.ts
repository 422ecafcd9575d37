/** See {@link Guard}. */
import {
  checkContainer,
  checkFiles,
  checkTools,
  guardOf,
  refuseHigherPrice,
  refuseModel,
  unsupportedThread,
} from "../guard.ts";

const suspects = {
  members: ["fallbacks", "container", "thread", "speed"],
  nested: ["container", "file_id"],
  // `model` stands in every body: of the tools only the advisor names one.
  tools: ["advisor_\\w+"],
};

/** Checks a body of messages. */
export const guardMessages = guardOf(suspects, (body) => {
  if (body["thread"] != null) throw unsupportedThread();
  if (body["fallbacks"] != null) throw refuseModel("fallbacks");
  if (body["speed"] === "fast") {
    throw refuseHigherPrice("speed", 'send "standard", or leave it out');
  }
  checkContainer(body["container"], "container");
  checkTools(body["tools"], "tools");
  checkFiles(body["messages"], "messages");
});
