import Anthropic, { APIError } from "@anthropic-ai/sdk";

const client = new Anthropic({
  baseURL: process.env["UAS_URL"] ?? "http://127.0.0.1:8080",
  apiKey: process.env["UAS_API_KEY"],
});

const stream = client.messages.stream({
  model: "demo-chat",
  max_tokens: 200,
  messages: [{ role: "user", content: "Hello" }],
});
stream.on("text", (text) => process.stdout.write(text));
const { usage } = await stream.finalMessage();
console.log(`\n${usage.input_tokens} tokens in, ${usage.output_tokens} out`);

try {
  await client.messages.create({ model: "none", max_tokens: 200, messages: [] });
} catch (error) {
  if (!(error instanceof APIError)) throw error;
  console.log(`${error.status} ${error.type}, request ${error.requestID}`);
}
