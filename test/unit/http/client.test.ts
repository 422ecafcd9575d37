/** The client of vendors: compressed replies, silence that says nothing, and the total limit. */
import { createHash } from "node:crypto";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import {
  brotliCompressSync,
  createGzip,
  createZstdCompress,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { countedBytesMin } from "../../../src/core/body-memory.ts";
import { neverCancelled } from "../../../src/core/cancel-signal.ts";
import { createHttpClient } from "../../../src/http/client.ts";
import type { HttpFailure } from "../../../src/http/failure.ts";

/** A client of a server that answers so. */
async function clientOf(
  answer: RequestListener,
  limits: { idleMs?: number; totalMs?: number } = {},
  credential: Readonly<Record<string, string>> = {},
) {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const times = { connectMs: 5_000, firstByteMs: 5_000, idleMs: 10_000, ...limits };
  const client = createHttpClient(`http://127.0.0.1:${port}`, times, credential);
  onTestFinished(async () => {
    await client.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return (request: Partial<Parameters<typeof client.send>[0]> = {}) =>
    client.send({
      ...{ method: "GET", path: "/", headers: {}, body: [], signal: neverCancelled },
      ...request,
    });
}

const json = { "content-type": "application/json" };
const events = { "content-type": "text/event-stream" };

describe("compressed replies", () => {
  const text = JSON.stringify({ text: "hello ".repeat(50_000) });
  const zeros = Buffer.alloc(64 * 1024 * 1024);

  it.each([
    ["gzip", gzipSync(text)],
    ["x-gzip", gzipSync(text)],
    ["deflate", deflateSync(text)],
    ["br", brotliCompressSync(text)],
    ["zstd", zstdCompressSync(text)],
    [" GZip ", gzipSync(text)],
  ])("a compressed reply in %s is decoded, and its headers are gone", async (encoding, body) => {
    const send = await clientOf((_request, response) =>
      response.writeHead(200, { ...json, "content-encoding": encoding }).end(body),
    );
    const { headers, body: reply } = await send();
    expect(headers).not.toHaveProperty("content-encoding");
    expect(headers).not.toHaveProperty("content-length");
    expect((await reply.whole(text.length)).toString()).toBe(text);
  });

  it.each([
    ["gzip", createGzip],
    ["zstd", createZstdCompress],
  ] as const)("a stream is decoded as it comes: %s", async (encoding, create) => {
    const gzip = create();
    const send = await clientOf((_request, response) => {
      response.writeHead(200, { ...events, "content-encoding": encoding });
      gzip.pipe(response);
    });
    gzip.write("data: one\n\n");
    gzip.flush();
    const { body } = await send();
    expect(await body.ready()).toBe(true);
    expect(Buffer.concat(body.take()).toString()).toBe("data: one\n\n");
    gzip.end("data: two\n\n");
    expect(await body.ready()).toBe(true);
    expect(Buffer.concat(body.take()).toString()).toBe("data: two\n\n");
    expect(await body.ready()).toBe(false);
  });

  it("a reader that reads nothing makes the vendor wait", async () => {
    const noise = Array.from({ length: 400 }, () => crypto.getRandomValues(Buffer.alloc(65_536)));
    const bytes = gzipSync(Buffer.concat(noise));
    let isSent = false;
    const send = await clientOf((_request, response) =>
      response
        .writeHead(200, { ...events, "content-encoding": "gzip" })
        .end(bytes, () => void (isSent = true)),
    );
    const { body } = await send();
    expect(await body.ready()).toBe(true);
    expect(isSent).toBe(false);
    let size = 0;
    while (await body.ready()) for (const piece of body.take()) size += piece.length;
    expect(size).toBe(400 * 65_536);
  });

  it.each([
    ["one that unpacks to too much", "gzip", gzipSync(zeros), /decompresses to over/],
    ["a cut one", "gzip", gzipSync(text).subarray(0, 200), /broken/],
    ["a cut one of zstd", "zstd", zstdCompressSync(text).subarray(0, 30), /broken/],
    ["one that is none", "gzip", Buffer.from(text), /broken/],
  ])(
    "a compressed reply fails, and takes no memory: %s",
    async (_name, encoding, bytes, reason) => {
      const send = await clientOf((_request, response) =>
        response.writeHead(200, { ...json, "content-encoding": encoding }).end(bytes),
      );
      const { body } = await send();
      await expect(body.whole(1024 * 1024 * 1024)).rejects.toThrow(reason);
    },
  );

  it("a reply without a body, and one in two encodings, stay as they are", async () => {
    const send = await clientOf((_request, response) =>
      response.writeHead(204, { "content-encoding": "gzip" }).end(),
    );
    expect((await (await send()).body.whole(10)).length).toBe(0);
    const other = await clientOf((_request, response) =>
      response.writeHead(200, { ...json, "content-encoding": "gzip, br" }).end("{}"),
    );
    const { headers, body } = await other();
    expect(headers["content-encoding"]).toBe("gzip, br");
    expect((await body.whole(10)).toString()).toBe("{}");
  });
});

describe("limits of time", () => {
  /** Sends a piece again and again. */
  function dripping(head: Record<string, string>, piece: string): RequestListener {
    return (_request, response) => {
      response.writeHead(200, head);
      const timer = setInterval(() => response.write(piece), 20);
      response.on("close", () => clearInterval(timer));
    };
  }

  it.each([
    ["comments", events, ": keep-alive\n\n"],
    ["pieces of comments", events, ":"],
    ["empty lines", events, "\r\n"],
    ["white space", json, " \n"],
  ])("%s do not end the silence of a vendor", async (_name, head, piece) => {
    const send = await clientOf(dripping(head, piece), { idleMs: 200 });
    const { body } = await send();
    const read = async (): Promise<void> => {
      while (await body.ready()) body.take();
    };
    await expect(read()).rejects.toMatchObject({
      kind: "timeout",
      message: "the reply had only white space or comments for too long",
    });
  });

  it("comments do not end the silence in a reply that is read whole either", async () => {
    const send = await clientOf(dripping(json, "\n"), { idleMs: 200 });
    const { body } = await send();
    await expect(body.whole(1_000_000)).rejects.toMatchObject({ kind: "timeout" });
  });

  it.each([
    ["data", events, "data: x\n\n"],
    ["a colon outside of an event stream", json, ":"],
  ])("%s ends the silence of a vendor, until the total limit", async (_name, head, piece) => {
    const send = await clientOf(dripping(head, piece), { idleMs: 200, totalMs: 600 });
    const { body } = await send();
    const read = async (): Promise<void> => {
      while (await body.ready()) body.take();
    };
    await expect(read()).rejects.toMatchObject({
      kind: "timeout",
      message: "the total time limit was reached",
    });
  });

  it("the total limit also ends the wait for a head", async () => {
    const send = await clientOf(() => undefined, { totalMs: 100 });
    await expect(send()).rejects.toMatchObject({ kind: "timeout" });
  });

  it("a reader that is slow is not taken for a silent vendor", async () => {
    const send = await clientOf(
      (_request, response) => response.writeHead(200, events).end("data: x\n\n"),
      {
        idleMs: 40,
      },
    );
    const { body } = await send();
    await body.ready();
    // Longer than the limit, counted by the very timer that enforces it.
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(Buffer.concat(body.take()).toString()).toBe("data: x\n\n");
    expect(await body.ready()).toBe(false);
  });
});

it("a large piece of a body that is read while it is sent has gone to the system once the next one is requested", async () => {
  const sizes = [countedBytesMin, 300, 524_288, countedBytesMin, 1, 100_000];
  const bytes = 8 * sizes.reduce((sum, size) => sum + size, 0);
  const sent = createHash("sha256");
  async function* open(): AsyncIterable<Uint8Array> {
    for (let turn = 0; turn < 8; turn++) {
      for (const size of sizes) {
        const piece = Buffer.allocUnsafeSlow(size).fill(turn * size);
        sent.update(piece);
        yield piece;
        if (size >= countedBytesMin) piece.fill(0xee);
      }
    }
  }
  const arrived = createHash("sha256");
  const send = await clientOf((request, response) => {
    let reads = 0;
    request.on("data", (piece: Buffer) => {
      arrived.update(piece);
      // So slow that its connection is full again and again.
      if (++reads % 8 !== 0) return;
      request.pause();
      setImmediate(() => request.resume());
    });
    request.once("end", () => response.end());
  });
  await (await send({ method: "POST", body: { bytes, open } })).body.whole(0);
  expect(arrived.digest("hex")).toBe(sent.digest("hex"));
});

describe("the operator's credential", () => {
  const secret = "sk-vendor-canary-5e1c0ffee";

  /** Everything that a reply shows, as it comes. */
  async function shown(answer: RequestListener): Promise<string> {
    const send = await clientOf(answer, {}, { authorization: `Bearer ${secret}` });
    const { body } = await send();
    const pieces: Buffer[] = [];
    try {
      while (await body.ready()) pieces.push(...body.take());
    } catch (error) {
      pieces.push(Buffer.from(` ${(error as HttpFailure).kind}`));
    }
    return Buffer.concat(pieces).toString();
  }

  it("is masked in a stream that cuts it in two, and the rest of the stream is whole", async () => {
    const text = await shown((_request, response) => {
      response.writeHead(200, events).write(`data: no ${secret.slice(0, 9)}`);
      setImmediate(() => response.end(`${secret.slice(9)} for you\n`));
    });
    expect(text).toBe(`data: no ${"*".repeat(secret.length)} for you\n`);
  });

  it("that begins at the end of a stream is passed on with its end, or its break", async () => {
    const end = await shown((_request, response) => {
      response.writeHead(200, events).end(`data: ${secret.slice(0, 5)}`);
    });
    expect(end).toBe(`data: ${secret.slice(0, 5)}`);
    const broken = await shown((_request, response) => {
      response.writeHead(200, events).write(`data: ${secret.slice(0, 5)}`, () => {
        setImmediate(() => response.destroy());
      });
    });
    expect(broken).toBe(`data: ${secret.slice(0, 5)} reset`);
  });
});
