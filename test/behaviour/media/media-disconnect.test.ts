/**
 * Clients of images and audio that disconnect in each phase of a call: what is charged is what
 * docs/money.md says, nothing stays held, and no file remains.
 */
import { existsSync, readdirSync } from "node:fs";
import { createServer, request as httpRequest, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { PriceConfig } from "../../../src/config/config.ts";
import { bearer } from "../rpc/harness.ts";
import { priceDefault } from "../../support/gateway.ts";
import { newRequestId, useGateway } from "../harness.ts";
import { detachedReplies } from "../disconnect/leaver.ts";

/** A vendor whose reply continues on demand. */
class SteeredVendor {
  readonly server = createServer((incoming, response) => {
    incoming.resume();
    incoming.once("end", () => this.#arrivals.shift()?.(response));
  });
  readonly #arrivals: Array<(response: ServerResponse) => void> = [];

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Resolves once it has the whole of the next request. */
  next(): Promise<ServerResponse> {
    return new Promise((resolve) => this.#arrivals.push(resolve));
  }
}

const vendor = new SteeredVendor();
beforeAll(() => new Promise<void>((resolve) => vendor.server.listen(0, "127.0.0.1", resolve)));
afterAll(
  () =>
    new Promise((resolve) => {
      vendor.server.close(resolve);
      vendor.server.closeAllConnections();
    }),
);

const none: PriceConfig = {
  ...priceDefault,
  input: undefined,
  cachedInput: undefined,
  cacheWrite: undefined,
  output: undefined,
};
const fixture = useGateway(() => {
  const model = (type: ModelType, price: PriceConfig) => {
    return { type, routes: [{ vendor: "v", model: "vendor-model" }], price, maxOutputTokens: 0 };
  };
  return {
    vendors: { v: { baseUrl: `${vendor.url}/v1`, apiKey: "sk-vendor", onDisconnect: "grace" } },
    models: {
      image: model(ModelType.IMAGE, { ...none, image: 40_000_000n }),
      voice: model(ModelType.AUDIO, { ...none, character: 15_000n }),
      ears: model(ModelType.AUDIO, { ...none, second: 100_000n }),
    },
  };
});

/** The temporary files that have a name. */
function uploads(): string[] {
  const folder = join(fixture.gateway.dataDir, "uploads");
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** A recording, long enough for a temporary file: 8,000 samples a second of one byte. */
function recording(): Buffer {
  const head = "524946460000000057415645666d74201000000001000100401f0000401f000001000800";
  const data = Buffer.alloc(8_000 * recordingSeconds, 0x80);
  const size = Buffer.alloc(4);
  size.writeUInt32LE(data.length);
  return Buffer.concat([Buffer.from(head, "hex"), Buffer.from("data"), size, data]);
}

const recordingSeconds = 150;
const recordingCharge = BigInt(recordingSeconds) * 100_000n;

interface Body {
  readonly type: string;
  readonly bytes: Buffer;
}

function json(members: object): Body {
  return { type: "application/json", bytes: Buffer.from(JSON.stringify(members)) };
}

function form(fields: Readonly<Record<string, string>>, file: Buffer, name: string): Body {
  const texts = Object.entries(fields).map(
    ([field, value]) =>
      `--x\r\ncontent-disposition: form-data; name="${field}"\r\n\r\n${value}\r\n`,
  );
  const part = `--x\r\ncontent-disposition: form-data; name="${name}"; filename="a.png"\r\n\r\n`;
  const bytes = [Buffer.from(texts.join("") + part), file, Buffer.from("\r\n--x--\r\n")];
  return { type: "multipart/form-data; boundary=x", bytes: Buffer.concat(bytes) };
}

/** Long enough for a temporary file. */
const png = Buffer.alloc(1_200_000, 0x89);
const prompt = "A lighthouse";
const event = (members: object) => `data: ${JSON.stringify(members)}\n\n`;
const image = { b64_json: "aGk=" };

/**
 * A request, its reply in two parts, and its charge in nano-USD wherever the vendor goes on to its
 * end.
 */
const rows = [
  {
    name: "an image",
    path: "/v1/images/generations",
    body: json({ model: "image", prompt }),
    type: "application/json",
    reply: ['{"created":1,', `"data":[${JSON.stringify(image)}]}`],
    charge: 40_000_000n,
  },
  {
    name: "a streamed image",
    path: "/v1/images/generations",
    body: json({ model: "image", prompt, stream: true, partial_images: 1 }),
    type: "text/event-stream",
    reply: [
      event({ type: "image_generation.partial_image", partial_image_index: 0, ...image }),
      event({ type: "image_generation.completed", ...image }),
    ],
    charge: 40_000_000n,
  },
  {
    name: "an edited image",
    path: "/v1/images/edits",
    body: form({ model: "image", prompt }, png, "image"),
    type: "application/json",
    reply: ['{"created":1,', `"data":[${JSON.stringify(image)}]}`],
    charge: 40_000_000n,
  },
  {
    name: "speech",
    path: "/v1/audio/speech",
    body: json({ model: "voice", voice: "alloy", input: "Good morning" }),
    type: "audio/mpeg",
    reply: ["first", "second"],
    charge: 12n * 15_000n,
  },
  {
    name: "a transcription",
    path: "/v1/audio/transcriptions",
    body: form({ model: "ears" }, recording(), "file"),
    type: "application/json",
    reply: ['{"text":"Good', ' morning"}'],
    charge: recordingCharge,
  },
  {
    name: "a streamed transcription",
    path: "/v1/audio/transcriptions",
    body: form({ model: "ears", stream: "true" }, recording(), "file"),
    type: "text/event-stream",
    reply: [
      event({ type: "transcript.text.delta", delta: "Good" }),
      event({ type: "transcript.text.done", text: "Good morning" }),
    ],
    charge: recordingCharge,
  },
] as const;

/** Sends a request, or the first part of it. */
function start({ path, body }: (typeof rows)[number], part = 1) {
  const requestId = newRequestId();
  const request = httpRequest(`${fixture.gateway.url}${path}`, {
    method: "POST",
    agent: false,
    headers: {
      ...bearer(fixture.customer.key),
      "content-type": body.type,
      "content-length": body.bytes.length,
      "x-request-id": requestId,
    },
  });
  request.on("error", () => {});
  const content = new Promise<string>((resolve) => {
    request.once("response", (response) => {
      response.on("error", () => {});
      response.once("data", (piece: Buffer) => resolve(piece.toString()));
    });
  });
  const closed = new Promise<void>((resolve) => request.once("close", resolve));
  const leave = async () => {
    request.destroy();
    await closed;
  };
  const sent = new Promise<void>((resolve) => {
    const bytes = body.bytes.subarray(0, Math.floor(body.bytes.length * part));
    if (part < 1) request.write(bytes, () => resolve());
    else request.end(bytes, () => resolve());
  });
  return { requestId, sent, content, leave };
}

/** Returns the outcome of a call. */
async function outcomeOf(requestId: string) {
  const { ending, cost } = await fixture.gateway.call(requestId);
  return { ending, cost: cost?.amountNanos ?? 0n };
}

/** Resolves once the gateway reads on for a client that has disconnected. */
function untilDetached(): Promise<void> {
  return vi.waitFor(async () => expect(await detachedReplies(fixture.gateway)).toBe(1));
}

it.each(rows)(
  "$name costs nothing where the client disconnects while it sends the request",
  async (row) => {
    const arrived = vendor.next();
    const client = start(row, 0.5);
    await client.sent;
    await client.leave();
    // Calls that were refused or disconnected this early may have no record, so the balance is
    // checked.
    const { accountId } = fixture.customer;
    const { balance } = await fixture.gateway.money(accountId);
    const whole = start(row);
    const response = await arrived;
    response.writeHead(200, { "content-type": row.type }).end(row.reply.join(""));
    await whole.content;
    expect((await outcomeOf(whole.requestId)).cost).toBe(row.charge);
    const after = await fixture.gateway.money(accountId);
    expect(after).toMatchObject({ held: 0n, balance: balance - row.charge });
    expect(uploads()).toEqual([]);
  },
);

it.each(rows)(
  "$name is charged where the client disconnects once the vendor has the request",
  async (row) => {
    const arrived = vendor.next();
    const client = start(row);
    const response = await arrived;
    const left = new Promise<void>((resolve) => response.once("close", resolve));
    await client.leave();
    // Images are always completed. Of audio whose client disconnected, the vendor has everything
    // that determines its charge.
    if (row.path.startsWith("/v1/images/")) {
      await untilDetached();
      response.writeHead(200, { "content-type": row.type }).end(row.reply.join(""));
    } else await left;
    expect(await outcomeOf(client.requestId)).toEqual({
      ending: CallEnding.CLIENT_GONE,
      cost: row.charge,
    });
    expect((await fixture.gateway.money(fixture.customer.accountId)).held).toBe(0n);
    expect(uploads()).toEqual([]);
  },
);

it.each(rows.filter(({ type }) => type !== "application/json"))(
  "$name is charged where the client disconnects in the middle of the reply",
  async (row) => {
    const arrived = vendor.next();
    const client = start(row);
    const response = await arrived;
    const [first, rest] = row.reply;
    response.writeHead(200, { "content-type": row.type }).write(first);
    expect(await client.content).toBe(first);
    await client.leave();
    await untilDetached();
    response.end(rest);
    expect(await outcomeOf(client.requestId)).toEqual({
      ending: CallEnding.CLIENT_GONE,
      cost: row.charge,
    });
    expect((await fixture.gateway.money(fixture.customer.accountId)).held).toBe(0n);
    expect(uploads()).toEqual([]);
  },
);
