/** Large requests arrive whole, at whichever vendor, although their memory is freed early. */
import { createHash, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { send } from "../../support/raw-http.ts";
import { useGateway } from "../harness.ts";

type Serve = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void;

const hashOf = (text: string | Buffer): string => createHash("sha256").update(text).digest("hex");

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) {
    pieces.push(piece as Buffer);
    // Others take turns, so that bodies wait in the system's buffers and in the gateway's.
    await new Promise(setImmediate);
  }
  return Buffer.concat(pieces);
}

/** Says which body it got. */
const good: Serve = async (request, response) => {
  const content = hashOf(await bodyOf(request));
  const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
  const choice = { index: 0, message: { role: "assistant", content }, finish_reason: "stop" };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ id: "c", model: "m", created: 1, choices: [choice], usage }));
};

/** Vendors that fail in their ways: the next one gets the same body. */
const failures: Readonly<Record<string, Serve>> = {
  "answers nothing but an error": async (request, response) => {
    await bodyOf(request);
    response.writeHead(500).end("{}");
  },
  "cuts the connection in the middle of the body": (request) => {
    request.once("data", () => request.socket.resetAndDestroy());
  },
  "answers with an error before it reads the body": (_request, response) => {
    response.writeHead(503, { connection: "close" }).end("{}");
  },
};

const servers = [...Object.values(failures), good].map((serve) =>
  createServer((request, response) => {
    request.on("error", () => {});
    void Promise.resolve(serve(request, response)).catch(() => response.destroy());
  }),
);

beforeAll(() =>
  Promise.all(
    servers.map((server) => new Promise<void>((done) => server.listen(0, "127.0.0.1", done))),
  ),
);
afterAll(() =>
  Promise.all(
    servers.map((server) => {
      server.closeAllConnections();
      return new Promise((done) => server.close(done));
    }),
  ),
);

const last = Object.keys(failures).length;
const vendorModel = "the-vendors-own-name";
const fixture = useGateway(() => ({
  vendors: Object.fromEntries(
    servers.map((server, at) => {
      const { port } = server.address() as AddressInfo;
      return [`vendor-${at}`, { baseUrl: `http://127.0.0.1:${port}/v1`, apiKey: "sk" }];
    }),
  ),
  models: Object.fromEntries(
    servers.map((_server, at) => [
      `model-${at}`,
      {
        routes: [...new Set([at, last])].map((vendor) => ({
          vendor: `vendor-${vendor}`,
          model: vendorModel,
        })),
        breaker: { enabled: false },
      },
    ]),
  ),
}));

it.each([
  ["answers", last] as const,
  ...Object.keys(failures).map((name, at) => [name, at] as const),
])(
  "forty large bodies at once arrive whole where the first vendor %s",
  { timeout: 120_000 },
  async (_name, at) => {
    const sizes = Array.from({ length: 40 }, (_, n) => 60_000 + n * 30_000);
    const replies = await Promise.all(
      sizes.map(async (bytes, n) => {
        const text = randomBytes(bytes / 2).toString("hex");
        // The model stands before the text or behind it: what is sent has a large piece at its end,
        // or at its begin.
        const write = (model: string): string => {
          const messages = [{ role: "user", content: text }];
          return JSON.stringify(n % 2 === 0 ? { model, messages } : { messages, model });
        };
        const { status, body } = await send(`${fixture.gateway.url}/v1/chat/completions`, {
          headers: {
            authorization: `Bearer ${fixture.customer.key}`,
            "content-type": "application/json",
          },
          body: write(`model-${at}`),
        });
        const { choices } = JSON.parse(body.toString()) as {
          choices?: { message: { content: string } }[];
        };
        const expected = hashOf(write(vendorModel));
        return [status, choices?.[0]?.message.content === expected];
      }),
    );
    expect(replies).toEqual(sizes.map(() => [200, true]));
  },
);
