import OpenAI, { APIError } from "openai";

const client = new OpenAI({
  baseURL: `${process.env["UAS_URL"] ?? "http://127.0.0.1:8080"}/v1`,
  apiKey: process.env["UAS_API_KEY"],
});

const stream = await client.chat.completions.create({
  model: "demo-chat",
  messages: [{ role: "user", content: "Hello" }],
  stream: true,
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
}
console.log();

try {
  await client.chat.completions.create({ model: "none", messages: [] });
} catch (error) {
  if (!(error instanceof APIError)) throw error;
  console.log(`${error.status} ${error.code}, request ${error.requestID}`);
}
