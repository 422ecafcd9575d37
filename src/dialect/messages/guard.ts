/** See {@link Guard}. */
import {
  checkContainer,
  checkFiles,
  checkTools,
  guardOf,
  refuseDearer,
  refuseModel,
  threadUnsupported,
} from "../guard.ts";

/** `model` stands in every body: of the tools only the advisor names one. */
const names = ["fallbacks", "container", "thread", "speed", "file_id", "advisor_\\w+"];

/** Checks a body of messages. */
export const guardMessages = guardOf(names, (body) => {
  if (body["thread"] != null) throw threadUnsupported();
  if (body["fallbacks"] != null) throw refuseModel("fallbacks");
  if (body["speed"] === "fast") {
    throw refuseDearer("speed", 'send "standard", or leave it out');
  }
  checkContainer(body["container"], "container");
  checkTools(body["tools"], "tools");
  checkFiles(body["messages"], "messages");
});
