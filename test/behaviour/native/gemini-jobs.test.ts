/** `/gemini`: films, interactions and files, by Google's own clients and over raw HTTP. */
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { GoogleGenAI } from "@google/genai";
import { experimental_generateVideo } from "ai";
import { GoogleGenAI as GoogleGenAI2 } from "genai-v2";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Customer } from "../../support/gateway.ts";
import { type NativeGateway, startGeminiGateway } from "./gemini-gateway.ts";
import {
  type GeminiJobs,
  interactionDone,
  interactionEvents,
  playGemini,
} from "./gemini-vendor.ts";

let gateway: NativeGateway;
let customer: Customer;
let stranger: Customer;
let jobs: GeminiJobs;
let client: GoogleGenAI;

beforeAll(async () => {
  gateway = await startGeminiGateway();
  [customer, stranger] = await Promise.all([gateway.customer(), gateway.customer()]);
  jobs = playGemini(gateway.vendor);
  client = new GoogleGenAI({
    apiKey: customer.key,
    httpOptions: { baseUrl: `${gateway.url}/gemini` },
  });
});

beforeEach(() => {
  gateway.vendor.clear();
  jobs.operation = {};
  jobs.interaction = { status: "in_progress" };
});

afterAll(async () => {
  expect(gateway.vendor.violations).toEqual([]);
  await gateway.close();
});

function ask(path: string, { who = customer, ...init }: RequestInit & { who?: Customer } = {}) {
  const headers = { "x-goog-api-key": who.key, ...(init.headers as Record<string, string>) };
  return fetch(`${gateway.url}/gemini${path}`, { ...init, headers });
}

function filmDone(id = "film1") {
  const video = { uri: `${gateway.vendor.origin}/v1beta/files/${id}:download?alt=media` };
  return { done: true, response: { generateVideoResponse: { generatedSamples: [{ video }] } } };
}

test("a video is held by its seconds, charged when done, and served under an address of the gateway", async () => {
  const body = JSON.stringify({
    instances: [{ prompt: "a river" }],
    parameters: { durationSeconds: 6, sampleCount: 1 },
  });
  const before = await gateway.money(customer.accountId);
  const submitted = await ask("/v1beta/models/veo:predictLongRunning", {
    method: "POST",
    body,
    headers: { "x-request-id": "film-1" },
  });
  const { name } = (await submitted.json()) as { name: string };
  expect(name).toMatch(/^models\/veo-x\/operations\/op\d+$/);
  const { held } = await gateway.money(customer.accountId);
  expect(held - before.held).toBe(6n * 400_000_000n);
  jobs.operation = filmDone();
  const call = await gateway.call("film-1");
  expect(call.cost?.amountNanos).toBe(6n * 400_000_000n);
  const polled = await (await ask(`/v1beta/${name}`)).text();
  expect(polled).toContain(`"uri":"${gateway.url}/gemini/v1beta/files/film1:download?alt=media"`);
  expect((await ask(`/v1beta/${name}`, { who: stranger })).status).toBe(404);
  const download = "/v1beta/files/film1:download?alt=media";
  expect((await ask(download, { who: stranger })).status).toBe(404);
  const film = await ask(download);
  expect([film.status, film.headers.get("location")]).toEqual([200, null]);
  expect((await film.arrayBuffer()).byteLength).toBeGreaterThan(50);
});

test("R-VND-2: a figure of 0 is none for Google, so that its own default is held for", async () => {
  const film = {
    instances: [{ prompt: "a" }],
    parameters: { durationSeconds: 0, sampleCount: "0" },
  };
  const interaction = {
    model: "gemini-x",
    input: "Hi",
    background: true,
    generation_config: { max_output_tokens: 0 },
  };
  // The usual 8 s; the input and the most that the model makes.
  const rows: readonly [string, object, bigint, bigint][] = [
    ["/v1beta/models/veo:predictLongRunning", film, 8n * 400_000_000n, 8n * 400_000_000n],
    ["/v1beta/interactions", interaction, 4_096n * 2_000n, 10n * 250n + 25n * 2_000n],
  ];
  for (const [path, body, least, cost] of rows) {
    const who = await gateway.customer();
    const headers = { "x-request-id": `zero-${path}` };
    const answer = await ask(path, { who, method: "POST", body: JSON.stringify(body), headers });
    expect([path, answer.status]).toEqual([path, 200]);
    expect((await gateway.money(who.accountId)).held).toBeGreaterThanOrEqual(least);
    jobs.operation = filmDone();
    jobs.interaction = interactionDone;
    const call = await gateway.call(`zero-${path}`);
    expect([path, call.cost?.amountNanos]).toEqual([path, cost]);
  }
});

test("a filtered video is done for its client, failed for the task, and free", async () => {
  const submitted = await ask("/v1beta/models/veo:predictLongRunning", {
    method: "POST",
    body: '{"instances": [{"prompt": "a"}]}',
    headers: { "x-request-id": "film-2" },
  });
  const { name } = (await submitted.json()) as { name: string };
  const generateVideoResponse = { raiMediaFilteredCount: 1, raiMediaFilteredReasons: ["no"] };
  jobs.operation = { done: true, response: { generateVideoResponse } };
  const call = await gateway.call("film-2");
  expect([call.errorCode, call.cost?.amountNanos ?? 0n]).toEqual(["content_rejected", 0n]);
  expect(await (await ask(`/v1beta/${name}`)).json()).toMatchObject({ done: true });
});

test("@ai-sdk/google and @google/genai 2.x generate videos", async () => {
  jobs.operation = filmDone();
  const google = createGoogleGenerativeAI({
    apiKey: customer.key,
    baseURL: `${gateway.url}/gemini/v1beta`,
  });
  let fetched = "";
  const { video } = await experimental_generateVideo({
    model: google.video("veo"),
    prompt: "a river",
    duration: 5,
    poll: { intervalMs: 50 },
    // Its own guard fetches nothing of this machine.
    download: async ({ url }) => {
      fetched = url.href;
      const film = await fetch(url);
      return { data: new Uint8Array(await film.arrayBuffer()), mediaType: "video/mp4" };
    },
  });
  expect(fetched).toContain(`${gateway.url}/gemini/v1beta/files/film1`);
  expect(video.uint8Array.length).toBeGreaterThan(50);
  const second = new GoogleGenAI2({
    apiKey: customer.key,
    httpOptions: { baseUrl: `${gateway.url}/gemini` },
  });
  let operation = await second.models.generateVideos({ model: "veo", prompt: "a" });
  // The reported state is a moment old.
  while (!operation.done) operation = await second.operations.getVideosOperation({ operation });
  expect(operation.response?.generatedVideos?.[0]?.video?.uri).toContain(
    "/gemini/v1beta/files/film1",
  );
});

test("an interaction in a machine of the vendor is refused", async () => {
  for (const environment of ["env-1", { type: "remote" }]) {
    const response = await ask("/v1beta/interactions", {
      method: "POST",
      body: JSON.stringify({ model: "gemini-x", input: "Hi", environment }),
    });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("environment");
  }
});

test("@google/genai 3.x: interactions, whole and as a stream, are charged by their usage", async () => {
  const whole = await client.interactions.create({ model: "gemini-x", input: "Hi" });
  expect(whole.status).toBe("completed");
  let text = "";
  const stream = await client.interactions.create({ model: "gemini-x", input: "Hi", stream: true });
  for await (const event of stream) {
    if (event.event_type === "step.delta" && event.delta.type === "text") text += event.delta.text;
  }
  expect(text).toBe("Hello");
  const response = await ask("/v1beta/interactions", {
    method: "POST",
    body: JSON.stringify({ model: "gemini-x", input: "Hi", stream: true }),
    headers: { "x-request-id": "int-1" },
  });
  expect(await response.text()).toBe(interactionEvents.join(""));
  const call = await gateway.call("int-1");
  expect(call.cost?.amountNanos).toBe(10n * 250n + 25n * 2_000n);
});

test("@google/genai 3.x: an interaction in the background is a job, with get and cancel", async () => {
  const made = await client.interactions.create(
    {
      model: "gemini-x",
      input: "Hi",
      background: true,
      webhook_config: { uris: ["https://receiver.example/hook"] },
    },
    { headers: { "x-request-id": "int-2" } },
  );
  expect(made.status).toBe("queued");
  jobs.interaction = interactionDone;
  const call = await gateway.call("int-2");
  expect(call.cost?.amountNanos).toBe(10n * 250n + 25n * 2_000n);
  expect((await client.interactions.get(made.id)).status).toBe("completed");
  jobs.interaction = { status: "in_progress" };
  const other = await client.interactions.create({
    model: "gemini-x",
    input: "Hi",
    background: true,
  });
  expect((await client.interactions.cancel(other.id)).status).toBe("cancelled");
});

test("R-VND-3: interactions and files belong to the account that created them, wherever they are named", async () => {
  const made = await client.interactions.create({ model: "gemini-x", input: "Hi" });
  await upload();
  gateway.vendor.clear();
  const uri = `${gateway.url}/gemini/v1beta/files/abc`;
  const vendorUri = `${gateway.vendor.origin}/v1beta/files/abc`;
  const part = (fileUri: string) => ({
    contents: [{ parts: [{ fileData: { mimeType: "image/png", fileUri } }] }],
  });
  const escaped = JSON.stringify(part(uri)).replace("fileUri", "file\\u0055ri");
  const rows: readonly (readonly [string, string, string | undefined])[] = [
    ["GET", `/v1beta/interactions/${made.id}`, undefined],
    ["GET", `/v1beta/interactions/${made.id}?stream=true`, undefined],
    ["POST", `/v1beta/interactions/${made.id}/cancel`, undefined],
    ["DELETE", `/v1beta/interactions/${made.id}`, undefined],
    [
      "POST",
      "/v1beta/interactions",
      JSON.stringify({ model: "gemini-x", input: "a", previous_interaction_id: made.id }),
    ],
    ["GET", "/v1beta/files/abc", undefined],
    ["DELETE", "/v1beta/files/abc", undefined],
    ["GET", "/v1beta/files/abc:download?alt=media", undefined],
    ["POST", "/upload/v1beta/files?upload_id=up1", "bytes"],
    ["POST", "/v1beta/models/gemini-x:generateContent", JSON.stringify(part(uri))],
    ["POST", "/v1beta/models/gemini-x:generateContent", JSON.stringify(part(vendorUri))],
    ...spellings(vendorUri, uri).map(
      (each) =>
        ["POST", "/v1beta/models/gemini-x:generateContent", JSON.stringify(part(each))] as const,
    ),
    ["POST", "/v1beta/models/gemini-x:generateContent", escaped],
    ["POST", "/v1beta/models/gemini-x:countTokens", JSON.stringify(part("files/abc"))],
    [
      "POST",
      "/v1beta/models/gemini-x:generateContent",
      JSON.stringify({ contents: [], cachedContent: "cachedContents/x" }),
    ],
  ];
  for (const [method, path, body] of rows) {
    const response = await ask(path, {
      method,
      who: stranger,
      ...(body !== undefined && { body }),
    });
    expect([path, body, response.status]).toEqual([path, body, 404]);
  }
  expect(gateway.vendor.requests).toEqual([]);
  const own = await ask("/v1beta/models/gemini-x:generateContent", {
    method: "POST",
    body: JSON.stringify(part(uri)),
  });
  expect(own.status).toBe(200);
  expect(gateway.vendor.requests[0]?.json).toEqual(part(vendorUri));
});

test("pitfall 6: files that declare JSON, and empty bodies, pass", async () => {
  const file = await upload();
  expect(file.uri).toBe(`${gateway.url}/gemini/v1beta/files/abc`);
  const sent = gateway.vendor.requests.at(-1);
  expect(sent?.body.toString()).toBe('not JSON, "uri": "https://x"');
  expect((await client.files.get({ name: "files/abc" })).state).toBe("ACTIVE");
});

test("a public address as input belongs to no account, and passes", async () => {
  const fileUri = "https://www.youtube.com/watch?v=files/abc";
  const response = await ask("/v1beta/models/gemini-x:generateContent", {
    method: "POST",
    body: JSON.stringify({
      contents: [{ parts: [{ fileData: { mimeType: "text/html", fileUri } }] }],
    }),
  });
  expect(response.status).toBe(200);
});

/** The same file, written so that a careless look overlooks it. */
function spellings(vendorUri: string, uri: string): readonly string[] {
  return [
    " files/abc",
    "/files/abc",
    vendorUri.replace("http:", "HTTP:"),
    vendorUri.replace("/v1beta/", "/v1beta/x/../"),
    vendorUri.replace("files", "%66iles"),
    vendorUri.replace("/v1beta/", "/v1alpha/"),
    `${vendorUri}:download?alt=media`,
    uri.replace("/v1beta/", "//v1beta//"),
  ];
}

function upload() {
  const file = new Blob(['not JSON, "uri": "https://x"'], { type: "application/json" });
  return client.files.upload({ file, config: { mimeType: "application/json" } });
}
