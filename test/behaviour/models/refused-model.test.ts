/** R-ID-4: the record of a request that is refused for a member says which model it named. */
import { expect, it } from "vitest";
import { ask, newRequestId, publicModel, useGateway } from "../harness.ts";

const fixture = useGateway();

const named = publicModel;

it.each([
  ["/v1/chat/completions", { ...ask, max_tokens: -1 }, named],
  ["/v1/chat/completions", { ...ask, messages: "Hello" }, named],
  ["/v1/chat/completions", { model: publicModel }, named],
  ["/api/ai/generate", { modelKey: publicModel, prompt: 1 }, named],
  ["/v1/responses", { model: publicModel, input: 1, max_output_tokens: 0 }, named],
  ["/v1/messages", { ...ask, max_tokens: -1 }, named],
  ["/v1/messages", ask, named],
  ["/v1/embeddings", { model: publicModel }, named],
  ["/v1/chat/completions", { ...ask, model: 1 }, ""],
  ["/v1/chat/completions", "[", ""],
])("%s answers 400 before it looks for the model: %j", async (path, body, model) => {
  const requestId = newRequestId();
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const reply = await fixture.send(path, { headers: { "x-request-id": requestId }, body: text });
  expect(reply.status).toBe(400);
  expect(await fixture.gateway.call(requestId)).toMatchObject({ status: 400, model });
});
