/** A form of 25 MB passes through in pieces: hardly any of it is in memory at a time. */
import { createServer, request as httpRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import { priceDefault } from "../../../support/gateway.ts";
import { useGateway } from "../../harness.ts";

/** Maximum memory that a request may add, in bytes. */
const addedMax = 8_000_000;

const pieceBytes = 500_000;
const pieces = 50;

/**
 * After how many bytes the memory is looked at: collecting the garbage of all that other files left
 * takes up to seconds.
 */
const lookBytes = 12_000_000;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/**
 * The memory in use, without garbage. The first collection may end one that V8 had begun before,
 * which keeps all that was made since then.
 */
function usedBytes(): number {
  collectGarbage();
  collectGarbage();
  const { arrayBuffers, heapUsed } = process.memoryUsage();
  return arrayBuffers + heapUsed;
}

const vendor: { server?: Server; url: string; received: number; most: number } = {
  url: "",
  received: 0,
  most: 0,
};

beforeAll(async () => {
  const server = createServer((request, response) => {
    let sinceLook = 0;
    request.on("data", (piece: Buffer) => {
      vendor.received += piece.length;
      sinceLook += piece.length;
      if (sinceLook < lookBytes) return;
      sinceLook = 0;
      vendor.most = Math.max(vendor.most, usedBytes());
    });
    request.once("end", () => {
      response.writeHead(200, { "content-type": "application/json" }).end('{"text":"Hello."}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  vendor.server = server;
  vendor.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => vendor.server?.close());

const fixture = useGateway(() => ({
  vendors: {
    slow: {
      baseUrl: `${vendor.url}/v1`,
      apiKey: "k",
    },
  },
  models: {
    ears: {
      type: ModelType.AUDIO,
      routes: [{ vendor: "slow", model: "vendor-ears" }],
      price: { ...priceDefault, input: undefined, output: undefined, second: 1_000n },
    },
  },
}));

const boundary = "a-boundary";
const head = `--${boundary}\r\ncontent-disposition: form-data; name="model"\r\n\r\nears\r\n--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\ncontent-type: audio/wav\r\n\r\n`;
const end = `\r\n--${boundary}--\r\n`;

/** Sends the form piece by piece, and looks at the memory meanwhile. */
async function upload(): Promise<{ readonly status: number; readonly most: number }> {
  const piece = Buffer.alloc(pieceBytes, "a recording ");
  const request = httpRequest(`${fixture.gateway.url}/v1/audio/transcriptions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${fixture.customer.key}`,
      "content-type": `multipart/form-data; boundary=${boundary}`,
      "content-length": head.length + pieceBytes * pieces + end.length,
    },
  });
  const answered = new Promise<number>((resolve, reject) => {
    request.once("response", (response) => {
      response.resume().once("end", () => resolve(response.statusCode ?? 0));
    });
    request.once("error", reject);
  });
  request.write(head);
  let most = 0;
  for (let count = 0; count < pieces; count++) {
    await new Promise((resolve) => request.write(piece, resolve));
    if ((count * pieceBytes) % lookBytes === lookBytes / 2) most = Math.max(most, usedBytes());
  }
  request.end(end);
  return { status: await answered, most };
}

/** Returns the memory that one upload adds, at the client and at the vendor. */
async function added(): Promise<number> {
  const before = usedBytes();
  vendor.received = vendor.most = 0;
  const { status, most } = await upload();
  expect(status).toBe(200);
  expect(vendor.received).toBeGreaterThan(pieceBytes * pieces);
  return Math.max(most, vendor.most) - before;
}

it("an upload adds at most 8 MB of memory, while it comes and while it goes on", async () => {
  // The first one loads code.
  expect((await upload()).status).toBe(200);
  expect(await added()).toBeLessThan(addedMax);
});
