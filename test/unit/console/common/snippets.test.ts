/**
 * The curl of a call in the log: the same endpoint, and nothing that a shell would take for a
 * command (R-CON-1).
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { assert, asyncProperty, string } from "fast-check";
import { expect, test } from "vitest";
import { callCurl, type KnownCall } from "../../../../console/src/common/call-snippet.ts";

const run = promisify(execFile);

const options = {
  origin: "http://host",
  message: "<it's yours>",
  body: "<the 'body'>",
  taskParams: { imageParams: { prompt: "A lake" } },
};

/** Prints its arguments, each in a line. */
const stub = `curl() { for each in "$@"; do printf '%s\\n' "$each" | tr '\\n' ' '; echo; done; }\n`;

/** Returns options, address and body of the curl command as a shell parses it. */
async function read(call: Partial<KnownCall>) {
  const curl = callCurl({ path: "/", model: "m", stream: false, ...call }, options);
  const { stdout } = await run("sh", ["-c", `${stub}${curl}`], { env: { UAS_API_KEY: "key" } });
  const words = stdout.split("\n").map((line) => line.trim());
  const at = words.indexOf("-H");
  expect(words.slice(at, -2)).toEqual([
    "-H",
    "authorization: Bearer key",
    "-H",
    "content-type: application/json",
    "-d",
  ]);
  return { flags: words.slice(0, at - 1), url: words[at - 1], body: words.at(-2) ?? "" };
}

const messages = [{ role: "user", content: options.message }];
const contents = [{ role: "user", parts: [{ text: options.message }] }];

test.for<[string, object]>([
  ["/v1/chat/completions", { model: "m", messages }],
  ["/api/ai/chat/completions", { model: "m", messages }],
  ["/api/ai/stream-generate", { model: "m", messages }],
  ["/v1/v1/messages", { model: "m", max_tokens: 1024, messages }],
  ["/v1/messages/count_tokens", { model: "m", messages }],
  ["/v1/responses", { model: "m", input: options.message }],
  ["/v1/responses/input_tokens", { model: "m", input: options.message }],
  ["/v1/embeddings", { model: "m", input: options.message }],
  ["/gemini/v1beta/models/g:generateContent", { contents }],
  ["/api/ai/tasks", { modelKey: "m", imageParams: { prompt: "A lake" } }],
])("a call of %s has a body of its style", async ([path, body]) => {
  const { flags, url, body: said } = await read({ path });
  expect([flags, url]).toEqual([[], `http://host${path}`]);
  expect(JSON.parse(said)).toEqual(body);
});

test("a streamed call is streamed again, in the way of its style", async () => {
  const chat = await read({ path: "/v1/chat/completions", stream: true });
  expect(chat.flags).toEqual(["-N"]);
  expect(JSON.parse(chat.body)).toMatchObject({ stream: true });
  const path = "/gemini/v1beta/models/g:streamGenerateContent";
  const gemini = await read({ path, stream: true });
  expect(gemini.url).toBe(`http://host${path}?alt=sse`);
});

test("if the body is unknown, it reports that", async () => {
  expect((await read({ path: "/fal/run/fal-ai/flux" })).body).toBe(options.body);
});

test("whatever a stranger wrote into path and model, the shell runs curl alone", async () => {
  for (const nasty of ["/v1/messages';id;'", "/$(id)`id`/v1/messages", "/v1/messages x\\"]) {
    const { url } = await read({ path: nasty, model: nasty });
    expect(url).toBe(`http://host${nasty}`);
  }
  await assert(
    asyncProperty(string(), async (model) => {
      const { body } = await read({ path: "/v1/chat/completions", model });
      expect(JSON.parse(body)).toEqual({ model, messages });
    }),
    { numRuns: 30 },
  );
});
