import { crossings } from "./translation.ts";

const begun = {
  messages: [
    { role: "user", content: "q" },
    { role: "assistant", content: "{" },
  ],
};

crossings("assistant prefill", [
  { from: "messages", to: "chat", with: "it would begin anew", given: begun, refused: /continue/ },
  {
    from: "messages",
    to: "responses",
    with: "it would begin anew",
    given: begun,
    refused: /continue/,
  },
  { from: "chat", to: "messages", given: begun, sent: begun },
  {
    from: "responses",
    to: "messages",
    given: { input: begun.messages },
    sent: begun,
  },
]);
