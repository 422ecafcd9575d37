/**
 * POST /v1/audio/transcriptions and /translations: forms with a recording, relayed to vendors of
 * OpenAI's form.
 */
import { readdirSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import OpenAI, { toFile } from "openai";
import OpenAIV6 from "openai-v6";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { PriceUnit } from "../../../../gen/uas/billing/v1/receipt_pb.ts";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import { UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import { type FormVendor, startFormVendor } from "../../../support/form-vendor.ts";
import { bearer } from "../../rpc/harness.ts";
import { errorOf, expectFree, json, newRequestId, useGateway } from "../../harness.ts";

const secret = "sk-recordings-vendor";
const running: { vendor?: FormVendor } = {};
const said = { text: "Hello there." };
beforeAll(async () => {
  running.vendor = await startFormVendor();
});
beforeEach(() => {
  vendor().requests.length = 0;
  vendor().answer = () => ({ body: JSON.stringify(said) });
});
afterAll(() => running.vendor?.close());

function vendor(): FormVendor {
  if (running.vendor === undefined) throw new Error("not started");
  return running.vendor;
}

const none = {
  input: undefined,
  cachedInput: undefined,
  cacheWrite: undefined,
  output: undefined,
  image: undefined,
  second: undefined,
  request: undefined,
};
const type = ModelType.AUDIO;
const route = (name: string) => [{ vendor: name, model: "vendor-ears" }];
const fixture = useGateway(() => ({
  vendors: {
    compatible: { baseUrl: `${vendor().url}/v1`, apiKey: secret },
    openai: { baseUrl: `${vendor().url}/v1`, apiKey: secret, kind: "openai" },
    anthropic: { baseUrl: vendor().url, apiKey: secret, kind: "anthropic" },
  },
  models: {
    /** 0.0001 USD a second. */
    ears: { type, routes: route("compatible"), price: { ...none, second: 100_000n } },
    /** 2.50 and 10 USD per million tokens. */
    tokens: {
      type,
      routes: route("openai"),
      price: { ...none, input: 2_500_000_000n, output: 10_000_000_000n },
    },
    text: { routes: route("compatible") },
    "no-ears": { type, routes: route("anthropic"), price: { ...none, second: 100_000n } },
  },
}));

/** A recording of this many seconds: 8,000 samples a second of one byte. */
function wav(seconds: number): Buffer {
  const data = Buffer.alloc(8_000 * seconds, 0x80);
  const head = Buffer.alloc(44);
  head.write("RIFF", 0, "latin1");
  head.writeUInt32LE(36 + data.length, 4);
  head.write("WAVEfmt ", 8, "latin1");
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8_000, 24);
  head.writeUInt32LE(8_000, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write("data", 36, "latin1");
  head.writeUInt32LE(data.length, 40);
  return Buffer.concat([head, data]);
}

const recording = wav(3);

/** A form as an SDK sends it, with its file first. */
async function formOf(
  fields: Readonly<Record<string, string>>,
  file: Buffer | undefined = recording,
  path = "/v1/audio/transcriptions",
  headers: Readonly<Record<string, string>> = {},
) {
  const form = new FormData();
  if (file !== undefined) form.append("file", new Blob([new Uint8Array(file)]), "a.wav");
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  const made = new Response(form);
  return fixture.send(path, {
    headers: { "content-type": made.headers.get("content-type") ?? "", ...headers },
    body: Buffer.from(await made.arrayBuffer()),
  });
}

describe("the official SDK", () => {
  it.each([
    ["7", OpenAI],
    ["6", OpenAIV6],
  ] as const)("version %s gets the text of a recording", async (_version, Client) => {
    const baseURL = `${fixture.gateway.url}/v1`;
    const client = new Client({ apiKey: fixture.customer.key, baseURL, maxRetries: 0 });
    const { audio } = client as unknown as OpenAI;
    const file = await toFile(recording, 'a "b".wav', { type: "audio/wav" });
    const sent = { file, model: "ears", language: "en", prompt: "Héllo" };
    expect(await audio.transcriptions.create(sent)).toEqual(said);
    const [request] = vendor().requests;
    expect(request?.url).toBe("/v1/audio/transcriptions");
    expect(request?.headers.authorization).toBe(`Bearer ${secret}`);
    expect(request?.fields).toEqual({ model: "vendor-ears", language: "en", prompt: "Héllo" });
    const [part] = request?.files ?? [];
    expect(part).toMatchObject({ name: "file", fileName: 'a "b".wav', type: "audio/wav" });
    expect(part?.bytes.equals(recording)).toBe(true);
    const english = await audio.translations.create({ file, model: "ears" });
    expect(english).toEqual(said);
    expect(vendor().requests[1]?.url).toBe("/v1/audio/translations");
  });

  it("the official SDK gets the text as events while it is made", async () => {
    const usage = { type: "tokens", input_tokens: 30, output_tokens: 5, total_tokens: 35 };
    const events = [
      { type: "transcript.text.delta", delta: "Hello" },
      { type: "transcript.text.done", text: "Hello", usage },
    ];
    const body = events.map((each) => `data: ${JSON.stringify(each)}\n\n`).join("");
    vendor().answer = () => ({ body, type: "text/event-stream" });
    const id = newRequestId();
    const stream = await fixture.openai.audio.transcriptions.create(
      { file: await toFile(recording, "a.wav"), model: "tokens", stream: true },
      { headers: { "x-request-id": id } },
    );
    expect(await Array.fromAsync(stream)).toEqual(events);
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({ stream: true, usageSource: UsageSource.UPSTREAM });
    // 30 × 2.50 + 5 × 10 USD per million.
    expect(call.cost?.amountNanos).toBe(125_000n);
  });
});

it.each([
  ["text", "Hello there.\n", "text/plain; charset=utf-8"],
  ["srt", "1\n00:00:00,000 --> 00:00:03,000\nHello there.\n", "text/plain"],
  ["vtt", "WEBVTT\n\n00:00.000 --> 00:03.000\nHello there.\n", "text/vtt"],
  ["verbose_json", '{ "duration": 3.0, "text":"Hello there.", "segments":[] }', "application/json"],
])(
  "passes %s byte for byte, and charges the length of the recording",
  async (format, body, contentType) => {
    vendor().answer = () => ({ body, type: contentType });
    const id = newRequestId();
    const got = await formOf({ model: "ears", response_format: format }, recording, undefined, {
      "x-request-id": id,
    });
    expect([got.status, got.body.toString()]).toEqual([200, body]);
    expect(got.headers["content-type"]).toBe(contentType);
    const call = await fixture.gateway.call(id);
    expect(call.cost?.amountNanos).toBe(300_000n);
  },
);

describe("money", () => {
  it("is the price of the measured seconds", async () => {
    const id = newRequestId();
    const got = await formOf({ model: "ears" }, wav(7), undefined, {
      "x-request-id": id,
      "x-uas-cost": "true",
    });
    expect(got.headers["x-uas-cost"]).toBe("0.0007");
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({
      path: "/v1/audio/transcriptions",
      ending: CallEnding.COMPLETED,
      usageSource: UsageSource.UPSTREAM,
    });
    const { receipt } = await fixture.gateway.callLog.getCall({
      call: { case: "callId", value: call.callId },
    });
    expect(receipt?.lines).toMatchObject([{ unit: PriceUnit.SECOND, quantity: "7" }]);
    expect(receipt?.recomputed).toEqual(receipt?.amount);
  });

  it("is that of the seconds that can be played, whatever the header says", async () => {
    const lying = wav(7);
    lying.writeUInt32LE(0xff_ff_ff_ff, 28);
    const { key } = await fixture.gateway.customer({ balanceNanos: 699_999n });
    const poor = { authorization: `Bearer ${key}` };
    expect((await formOf({ model: "ears" }, lying, undefined, poor)).status).toBe(402);
    const id = newRequestId();
    await formOf({ model: "ears" }, lying, undefined, { "x-request-id": id });
    const call = await fixture.gateway.call(id);
    expect([call.held?.amountNanos, call.cost?.amountNanos]).toEqual([700_000n, 700_000n]);
  });

  it("is the vendor's figure where it reports one", async () => {
    const usage = { type: "duration", seconds: 5 };
    vendor().answer = () => ({ body: JSON.stringify({ ...said, usage }) });
    const id = newRequestId();
    await formOf({ model: "ears" }, recording, undefined, { "x-request-id": id });
    expect((await fixture.gateway.call(id)).cost?.amountNanos).toBe(500_000n);
  });

  it("402 if the balance does not cover the recording, before its vendor is called", async () => {
    const { key } = await fixture.gateway.customer({ balanceNanos: 299_999n });
    const got = await formOf({ model: "ears" }, recording, undefined, {
      authorization: `Bearer ${key}`,
    });
    expect(got.status).toBe(402);
    expect(vendor().requests).toHaveLength(0);
  });
});

it("a recording of many megabytes is sent on whole, from a file that has no name", async () => {
  const long = wav(3_000);
  const id = newRequestId();
  const got = await formOf({ model: "ears" }, long, undefined, { "x-request-id": id });
  expect(json(got)).toEqual(said);
  expect(vendor().requests[0]?.files[0]?.bytes.equals(long)).toBe(true);
  expect(leftFiles()).toEqual([]);
  expect((await fixture.gateway.call(id)).cost?.amountNanos).toBe(300_000_000n);
});

/** The temporary files that have a name. */
function leftFiles(): string[] {
  return readdirSync(join(fixture.gateway.dataDir, "uploads"));
}

describe("refused, free of charge", () => {
  it.each([
    { status: 400, name: "no model", fields: {}, param: "model" },
    { status: 400, name: "no file", file: undefined, param: "file" },
    { status: 400, name: "an empty file", file: Buffer.alloc(0), param: "file" },
    { status: 400, name: "stream as a word", fields: { model: "ears", stream: "yes" } },
    { status: 400, name: "a model of text", fields: { model: "text" }, param: "model" },
    { status: 400, name: "a vendor without", fields: { model: "no-ears" }, param: "model" },
    {
      status: 400,
      name: "a field that is too long",
      fields: { model: "ears", prompt: "a".repeat(200_000) },
      param: "prompt",
    },
    { status: 404, name: "no such model", fields: { model: "none" }, param: "model" },
    { status: 401, name: "no key", headers: { authorization: "" } },
    { status: 415, name: "JSON", headers: { "content-type": "application/json" } },
    { status: 415, name: "no boundary", headers: { "content-type": "multipart/form-data" } },
    {
      status: 400,
      name: "another boundary",
      headers: { "content-type": "multipart/form-data; boundary=other" },
    },
  ])("a transcription with $name is refused with $status, free of charge", async (row) => {
    const { status, fields = { model: "ears" }, headers, param } = row;
    const file = "file" in row ? row.file : recording;
    const got = await expectFree(fixture.gateway, fixture.customer, () =>
      file === undefined
        ? formOf({ ...fields, other: "x" }, Buffer.alloc(0), undefined, headers)
        : formOf(fields, file, undefined, headers),
    );
    expect(got.status).toBe(status);
    expect(errorOf(got)).toMatchObject({ message: expect.any(String), code: expect.any(String) });
    if (param !== undefined) expect(errorOf(got)["param"]).toBe(param);
    expect(vendor().requests).toHaveLength(0);
  });

  const part = (name: string, value: string) =>
    `--x\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const file = '--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nabc\r\n';
  it.each([
    ["without its end", `${part("model", "ears")}${file}`],
    ["that is empty", ""],
    ["with a field twice", `${part("model", "ears")}${part("model", "x")}${file}--x--\r\n`],
    ["with two files", `${part("model", "ears")}${file}${file}--x--\r\n`],
    ["of too many parts", `${part("a", "b").repeat(100)}--x--\r\n`],
  ])("a transcription form %s is refused with 400, free of charge", async (_name, body) => {
    const got = await expectFree(fixture.gateway, fixture.customer, () =>
      fixture.send("/v1/audio/transcriptions", {
        headers: { "content-type": "multipart/form-data; boundary=x" },
        body,
      }),
    );
    expect(got.status).toBe(400);
    expect(vendor().requests).toHaveLength(0);
  });

  it("413 for a form that is announced as too long, or is", async () => {
    const headers = { "content-type": "multipart/form-data; boundary=x" };
    const body = Buffer.alloc(65 * 1024 * 1024, 0x61);
    const got = await expectFree(fixture.gateway, fixture.customer, () =>
      fixture.send("/v1/audio/transcriptions", { headers, body }),
    );
    expect(got.status).toBe(413);
    expect(errorOf(got)["code"]).toBe("request_too_large");
  });

  it("nothing remains where the client disconnects in the middle of its upload", async () => {
    const id = newRequestId();
    await expectFree(fixture.gateway, fixture.customer, async () => {
      const url = new URL(`${fixture.gateway.url}/v1/audio/transcriptions`);
      const request = httpRequest(url, {
        method: "POST",
        agent: false,
        headers: {
          ...bearer(fixture.customer.key),
          "content-type": "multipart/form-data; boundary=x",
          "content-length": 10_000_000,
          "x-request-id": id,
        },
      });
      request.on("error", () => {});
      const sent = Promise.withResolvers<void>();
      request.write(`${file.slice(0, -5)}${"a".repeat(2_000_000)}`, () => sent.resolve());
      await sent.promise;
      request.destroy();
      await fixture.gateway.call(id);
    });
    expect(vendor().requests).toHaveLength(0);
    expect(leftFiles()).toEqual([]);
  });

  it("the vendor's own words where it refuses the recording (R-ERR-4)", async () => {
    const told = '{"error":{"message":"bad audio","type":"invalid_request_error","code":"x"}}';
    vendor().answer = () => ({ status: 400, body: told });
    const got = await expectFree(fixture.gateway, fixture.customer, () =>
      formOf({ model: "ears" }),
    );
    expect([got.status, got.body.toString()]).toEqual([400, told]);
  });
});
