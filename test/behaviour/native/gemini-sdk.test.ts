/** Google's own clients against the gateway, with nothing changed but the key and the address. */
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { ApiError, GoogleGenAI } from "@google/genai";
import { embedMany, generateText, streamText } from "ai";
import { GoogleGenAI as GoogleGenAI2 } from "genai-v2";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Customer } from "../../support/gateway.ts";
import { type NativeGateway, startGeminiGateway } from "./gemini-gateway.ts";
import { geminiEvents, geminiReply } from "./gemini-replies.ts";

let gateway: NativeGateway;
let customer: Customer;

beforeAll(async () => {
  gateway = await startGeminiGateway();
  customer = await gateway.customer();
  gateway.vendor.answer(({ url }) => {
    if (url.includes(":streamGenerateContent")) {
      return { headers: { "content-type": "text/event-stream" }, body: geminiEvents };
    }
    if (url.includes(":countTokens")) return { body: '{"totalTokens": 7}' };
    if (url.endsWith("/models/gemini-x")) {
      return { body: '{"name": "models/gemini-x", "inputTokenLimit": 1048576}' };
    }
    if (url.includes(":embed")) return { body: '{"embedding": {"values": [0.5]}}' };
    if (url.includes(":batch")) return { body: '{"embeddings": [{"values": [0.5]}]}' };
    return { body: geminiReply };
  });
});

afterAll(async () => {
  expect(gateway.vendor.violations).toEqual([]);
  await gateway.close();
});

const clients = {
  "3.x": (apiKey: string, baseUrl: string) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl } }),
  "2.x": (apiKey: string, baseUrl: string) =>
    new GoogleGenAI2({ apiKey, httpOptions: { baseUrl } }),
};

for (const [version, open] of Object.entries(clients)) {
  test(`@google/genai ${version}: text, stream, counts, embeddings and errors`, async () => {
    const client = open(customer.key, `${gateway.url}/gemini`);
    const model = "gemini-x";
    const reply = await client.models.generateContent({ model, contents: "Hi" });
    expect(reply.text).toBe("Hello é");
    expect(reply.usageMetadata?.candidatesTokenCount).toBe(20);
    let text = "";
    const stream = await client.models.generateContentStream({ model, contents: "Hi" });
    for await (const chunk of stream) text += chunk.text ?? "";
    expect(text).toBe("Héllo!");
    expect((await client.models.countTokens({ model, contents: "Hi" })).totalTokens).toBe(7);
    const embedded = await client.models.embedContent({ model: "embed-x", contents: "Hi" });
    expect(embedded.embeddings?.[0]?.values).toEqual([0.5]);
    const named = await client.models.get({ model });
    expect(named.inputTokenLimit).toBe(1_048_576);
    const listed: string[] = [];
    for await (const each of await client.models.list()) listed.push(each.name ?? "");
    expect(listed).toEqual(
      [
        ...["embed-x", "gemini-again", "gemini-image", "gemini-tools", "gemini-x", "gemini-y"],
        "veo-x",
      ].map((name) => `models/${name}`),
    );
    const refused = await client.models
      .generateContent({ model: "nobody", contents: "Hi" })
      .catch((error: unknown) => error as ApiError);
    expect(refused).toMatchObject({
      status: 404,
      message: expect.stringContaining("model_not_found"),
    });
    const stranger = open("uas_00000000000000000000000000000000", `${gateway.url}/gemini`);
    await expect(stranger.models.generateContent({ model, contents: "Hi" })).rejects.toMatchObject({
      status: 401,
    });
  });
}

test("@ai-sdk/google generates text, streams and embeddings", async () => {
  const google = createGoogleGenerativeAI({
    apiKey: customer.key,
    baseURL: `${gateway.url}/gemini/v1beta`,
  });
  const { text } = await generateText({ model: google("gemini-x"), prompt: "Hi" });
  expect(text).toBe("Hello é");
  const { textStream } = streamText({ model: google("gemini-x"), prompt: "Hi" });
  let streamed = "";
  for await (const piece of textStream) streamed += piece;
  expect(streamed).toBe("Héllo!");
  const model = google.embedding("embed-x");
  const { embeddings } = await embedMany({ model, values: ["Hi"] });
  expect(embeddings).toEqual([[0.5]]);
});
