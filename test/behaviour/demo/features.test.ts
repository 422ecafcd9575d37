/** Features that a first user can try with the built-in vendor and the official SDK. */
import { createHash } from "node:crypto";
import { Ajv } from "ajv";
import OpenAI, { APIError, toFile } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import {
  always,
  type Customer,
  type Gateway,
  priceDefault,
  startGateway,
} from "../../support/gateway.ts";
import { newRequestId } from "../harness.ts";

let gateway: Gateway;
let customer: Customer;
let openai: OpenAI;

const hello = [{ role: "user" as const, content: "Hello" }];
const ask = { model: "instant", messages: hello };
const perSecond = always({ ...priceDefault, input: undefined, output: undefined, second: 1_000n });
const perToken = always({ ...priceDefault, output: undefined });

beforeAll(async () => {
  const model = (type: ModelType, name: string, prices = perToken) => ({
    type,
    routes: [{ vendor: "demo", model: name }],
    prices,
  });
  gateway = await startGateway({
    vendors: { demo: { kind: "demo", baseUrl: "" } },
    models: {
      instant: { routes: [{ vendor: "demo", model: "instant" }] },
      embedding: model(ModelType.EMBEDDING, "embedding"),
      rerank: model(ModelType.RERANK, "rerank", always({ ...priceDefault, search: 1_000n })),
      moderation: model(ModelType.MODERATION, "moderation"),
      audio: model(ModelType.AUDIO, "audio", perSecond),
      image: model(ModelType.IMAGE, "image", always({ ...priceDefault, image: 1_000n })),
    },
  });
  customer = await gateway.customer();
  openai = new OpenAI({ apiKey: customer.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
});
afterAll(() => gateway?.close());

async function refusal(run: Promise<unknown>) {
  const error = await run.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof APIError) return { status: error.status, param: error.param };
  throw new Error("it was not refused");
}

describe("chat", () => {
  it("has another id each time, and the time of the call", async () => {
    const before = Math.floor(Date.now() / 1_000);
    const [first, second] = [
      await openai.chat.completions.create(ask),
      await openai.chat.completions.create(ask),
    ];
    expect(first.id).not.toBe(second.id);
    expect(first.created).toBeGreaterThanOrEqual(before);
    expect(first.choices[0]?.message.content).toBe(second.choices[0]?.message.content);
  });

  it("makes as many choices as asked for, and charges them", async () => {
    const id = newRequestId();
    const { choices, usage } = await openai.chat.completions.create(
      { ...ask, n: 3 },
      { headers: { "x-request-id": id } },
    );
    expect(choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect((await gateway.call(id)).usage?.outputTokens).toBe(usage?.completion_tokens);
  });

  it("streams several choices, each with its end", async () => {
    const stream = await openai.chat.completions.create({ ...ask, n: 2, stream: true });
    const ends: number[] = [];
    for await (const { choices } of stream) {
      for (const { index, finish_reason: finish } of choices) if (finish) ends.push(index);
    }
    expect(ends).toEqual([0, 1]);
  });

  it("answers in a JSON schema, and its answer is valid", async () => {
    const schema = {
      type: "object",
      properties: {
        city: { type: "string" },
        degrees: { type: "integer", minimum: -50, maximum: 50 },
        tags: { type: "array", items: { enum: ["warm", "cold"] }, minItems: 1 },
      },
      required: ["city", "degrees", "tags"],
      additionalProperties: false,
    };
    const { choices } = await openai.chat.completions.create({
      ...ask,
      response_format: {
        type: "json_schema",
        json_schema: { name: "weather", strict: true, schema },
      },
    });
    const validate = new Ajv().compile(schema);
    expect(validate(JSON.parse(choices[0]?.message.content ?? ""))).toBe(true);
  });

  it("calls the named tool with arguments that its schema accepts", async () => {
    const properties = { count: { type: "integer", minimum: 5 } };
    const parameters = { type: "object", properties, required: ["count"] };
    const tool = (name: string) => ({
      type: "function" as const,
      function: { name, parameters },
    });
    const { choices } = await openai.chat.completions.create({
      ...{ ...ask, tools: [tool("send_mail"), tool("look_up")] },
      tool_choice: { type: "function", function: { name: "look_up" } },
    });
    const [call] = choices[0]?.message.tool_calls ?? [];
    expect(call).toMatchObject({
      type: "function",
      function: { name: "look_up", arguments: '{"count":5}' },
    });
  });

  it.each([{}, undefined, { anyOf: [{ type: "string" }] }])(
    "calls a tool with an object, also where its parameters are %j",
    async (parameters) => {
      const described = { name: "f", ...(parameters && { parameters }) };
      const { choices } = await openai.chat.completions.create({
        ...{ ...ask, tools: [{ type: "function", function: described }] },
      });
      const [call] = choices[0]?.message.tool_calls ?? [];
      expect(call?.type === "function" && call.function.arguments).toBe("{}");
    },
  );

  it("says how many files it received", async () => {
    const url = `data:image/png;base64,${Buffer.from("12345").toString("base64")}`;
    const { choices } = await openai.chat.completions.create({
      model: "instant",
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Look" },
            { type: "image_url", image_url: { url } },
          ],
        },
      ],
    });
    expect(choices[0]?.message.content).toContain("You sent a file, which");
  });

  it.each([
    [{ n: 200 }, "n"],
    [{ max_tokens: -1 }, "max_tokens"],
  ])("refuses %j, naming the member", async (change, param) => {
    const body = { ...ask, ...change };
    expect(await refusal(openai.chat.completions.create(body))).toEqual({ status: 400, param });
  });
});

describe("embeddings", () => {
  it("embeddings are near each other where texts share words, whatever their form", async () => {
    const { data, usage } = await openai.embeddings.create({
      model: "embedding",
      input: ["the cat sat", "the cat sits", "stock markets fell"],
      dimensions: 64,
    });
    const vectors = data.map(({ embedding }) => embedding);
    const near = (a = 0, b = 1) =>
      (vectors[a] ?? []).reduce((sum, value, at) => sum + value * (vectors[b]?.[at] ?? 0), 0);
    expect(vectors.map((vector) => vector.length)).toEqual([64, 64, 64]);
    expect(near(0, 1)).toBeGreaterThan(near(0, 2));
    expect(usage.prompt_tokens).toBeGreaterThan(0);
    const plain = await openai.embeddings.create({
      ...{ model: "embedding", input: "the cat sat", dimensions: 64, encoding_format: "float" },
    });
    plain.data[0]?.embedding.forEach((value, at) =>
      expect(value).toBeCloseTo(vectors[0]?.[at] ?? 9),
    );
  });

  it("embeddings of the demo vendor take tokens as input", async () => {
    const { data } = await openai.embeddings.create({ model: "embedding", input: [[1, 2], [3]] });
    expect(data).toHaveLength(2);
  });
});

it("the demo vendor ranks the document first that shares words with the query", async () => {
  const response = await fetch(`${gateway.url}/v2/rerank`, {
    method: "POST",
    headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "rerank",
      query: "capital of France",
      documents: ["Bananas are yellow", "Paris is the capital of France"],
      top_n: 1,
    }),
  });
  const { results } = (await response.json()) as { results: unknown };
  expect(results).toEqual([{ index: 1, relevance_score: expect.any(Number) }]);
});

it("the demo vendor moderates by a few words", async () => {
  const { results } = await openai.moderations.create({
    model: "moderation",
    input: ["I will kill you", "Hello"],
  });
  expect(results.map(({ flagged }) => flagged)).toEqual([true, false]);
  expect(results[0]?.categories.violence).toBe(true);
});

it("the demo vendor continues a text, whole and streamed alike", async () => {
  const body = { model: "instant", prompt: "Once", max_tokens: 6, echo: true };
  const whole = await openai.completions.create(body);
  let text = "";
  for await (const { choices } of await openai.completions.create({ ...body, stream: true })) {
    text += choices[0]?.text ?? "";
  }
  expect(whole.choices[0]).toMatchObject({ text, finish_reason: "length" });
  expect(text.startsWith("Once")).toBe(true);
});

describe("audio", () => {
  it("is spoken, heard again, and charged by its length", async () => {
    const id = newRequestId();
    const spoken = await openai.audio.speech.create(
      { model: "audio", voice: "alloy", input: "Good morning, all of you." },
      { headers: { "x-request-id": id } },
    );
    expect(spoken.headers.get("content-type")).toBe("audio/wav");
    const bytes = Buffer.from(await spoken.arrayBuffer());
    const seconds = (bytes.length - bytes.indexOf("data") - 8) / 32_000;
    expect((await gateway.call(id)).cost?.amountNanos).toBe(BigInt(seconds * 1_000));
    const file = await toFile(bytes, "a.wav", { type: "audio/wav" });
    const heard = await openai.audio.transcriptions.create({ model: "audio", file });
    expect(heard.text).toContain(`${bytes.length} bytes`);
    for (const format of ["srt", "vtt", "text"] as const) {
      const text = await openai.audio.transcriptions.create({
        model: "audio",
        file,
        response_format: format,
      });
      expect(text).toContain("not an AI");
    }
    let streamed = "";
    const stream = await openai.audio.transcriptions.create({ model: "audio", file, stream: true });
    for await (const event of stream)
      if (event.type === "transcript.text.delta") streamed += event.delta;
    expect(streamed).toBe(heard.text);
  });

  it("refuses formats that it does not make", async () => {
    const run = openai.audio.speech.create({
      ...{ model: "audio", voice: "alloy", input: "x", response_format: "mp3" },
    });
    expect(await refusal(run)).toEqual({ status: 400, param: "response_format" });
  });
});

it("the gateway lists each demo model with the paths that it answers", async () => {
  const paths: Record<string, unknown> = {};
  for await (const model of openai.models.list()) {
    expect(model.created).toBeGreaterThan(1_600_000_000);
    paths[model.id] = "endpoints" in model ? model.endpoints : undefined;
  }
  expect(paths).toEqual({
    instant: ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/ai/tasks"],
    embedding: ["/v1/embeddings"],
    rerank: ["/v1/rerank", "/v2/rerank"],
    moderation: ["/v1/moderations"],
    audio: [
      "/v1/audio/speech",
      "/v1/audio/transcriptions",
      "/v1/audio/translations",
      "/api/ai/tasks",
    ],
    image: ["/v1/images/generations", "/v1/images/edits", "/v1/images/variations", "/api/ai/tasks"],
  });
});

it("the demo vendor edits an image the same way each time", async () => {
  const image = await toFile(Buffer.from("not really an image"), "a.png", { type: "image/png" });
  const edit = async (prompt: string) => {
    const { data } = await openai.images.edit({
      ...{ model: "image", image, prompt, n: 2, size: "256x256", response_format: "b64_json" },
    });
    expect(data).toHaveLength(2);
    const bytes = Buffer.from(data?.[0]?.b64_json ?? "", "base64");
    expect(bytes.toString("latin1", 1, 4)).toBe("PNG");
    return createHash("sha256").update(bytes).digest("hex");
  };
  expect(await edit("a hat")).toBe(await edit("a hat"));
  expect(await edit("a hat")).not.toBe(await edit("a coat"));
});

it("the demo vendor reads an image that is too large for memory to its last byte", async () => {
  const edit = async (last: number): Promise<string | undefined> => {
    const bytes = Buffer.alloc(3_000_000, "pixel");
    bytes[bytes.length - 1] = last;
    const image = await toFile(bytes, "a.png", { type: "image/png" });
    const { data } = await openai.images.edit({
      ...{ model: "image", image, prompt: "a hat", size: "256x256", response_format: "b64_json" },
    });
    return data?.[0]?.b64_json;
  };
  expect(await edit(1)).toBe(await edit(1));
  expect(await edit(1)).not.toBe(await edit(2));
});
