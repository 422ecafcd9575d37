import { GoogleGenAI } from "@google/genai";

const client = new GoogleGenAI({
  apiKey: process.env["UAS_API_KEY"] ?? "",
  httpOptions: { baseUrl: `${process.env["UAS_URL"] ?? "http://127.0.0.1:8080"}/gemini` },
});

const stream = await client.models.generateContentStream({
  model: "gemini-2.5-flash",
  contents: "Hello",
});
for await (const { text } of stream) process.stdout.write(text ?? "");
console.log();
