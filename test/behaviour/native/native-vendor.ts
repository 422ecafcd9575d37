/**
 * A vendor's own interface, simulated over real HTTP: strict about who asks, hostile in what it
 * answers.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { film } from "../../unit/provider/video-file.ts";

/** The request. */
export interface AskedVendor {
  readonly method: string;
  /** Path and query as they came. */
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  /** The parsed body; undefined if it is no JSON. */
  readonly json: Record<string, unknown> | undefined;
  /** Aborted when the gateway leaves before the end. */
  readonly left: AbortSignal;
}

/** The answer. */
export interface VendorAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Pieces are sent one by one. Default: nothing. */
  readonly body?: string | Buffer | readonly (string | Buffer)[] | AsyncIterable<string | Buffer>;
  /** Breaks the connection behind the body. Default: it ends in good order. */
  readonly isCut?: boolean;
}

/** Answers a request; undefined if there is nothing there. */
export type VendorHandler = (
  asked: AskedVendor,
) => VendorAnswer | undefined | Promise<VendorAnswer | undefined>;

/** A running one. */
export interface NativeVendorServer {
  readonly origin: string;
  readonly secret: string;
  /** Oldest first. */
  readonly requests: readonly AskedVendor[];
  /** Violations that reached the vendor. */
  readonly violations: readonly string[];
  /** Answers from now on. */
  answer(handler: VendorHandler): void;
  clear(): void;
  close(): Promise<void>;
}

/** Members of every answer that no customer may see. */
const hostile: Readonly<Record<string, string>> = {
  "set-cookie": "vendor-session=1",
  server: "vendor-server",
  via: "1.1 vendor-proxy",
  "x-request-id": "vendor-request-id",
  "x-ratelimit-remaining": "3",
  "openai-organization": "the-operators",
};

/**
 * Workers that do not wait a second before they ask a vendor again: for tests that wait for jobs to
 * end.
 */
export const often = { scanMs: 100, pollMs: 50, pollMsMax: 50, refreshMs: 25 } as const;

/** Starts one. @param credential the header, and what stands before the secret in it */
export async function startNativeVendor(credential: {
  readonly header: string;
  readonly scheme?: string;
}): Promise<NativeVendorServer> {
  const secret = "vendor-secret-canary";
  const requests: AskedVendor[] = [];
  const violations: string[] = [];
  let handler: VendorHandler = () => undefined;
  const server = createServer((request, response) => void serve(request, response));
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.on("error", () => {});
    const asked = await read(request, response);
    if (asked.url.startsWith("/files/")) {
      // Where results lie, as at a content network: without a key.
      const [, seconds] = /^\/files\/film-([\d.]+)\.mp4(?:\?.*)?$/.exec(asked.url) ?? [];
      const file = seconds === undefined ? picture : film(Number(seconds));
      const type = seconds === undefined ? "image/png" : "video/mp4";
      response.writeHead(200, { "content-type": type }).end(file);
      return;
    }
    requests.push(asked);
    const { header, scheme = "" } = credential;
    violations.push(...violationsOf(asked, { header, value: `${scheme}${secret}` }));
    const answer = (await handler(asked)) ?? { status: 404, body: "{}" };
    await send(response, { header, secret }, answer);
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    secret,
    requests,
    violations,
    answer: (next) => void (handler = next),
    clear: () => void (requests.length = 0),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function read(request: IncomingMessage, response: ServerResponse): Promise<AskedVendor> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const body = Buffer.concat(pieces);
  const leaving = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) leaving.abort();
  });
  let json: Record<string, unknown> | undefined;
  try {
    json = JSON.parse(body.toString()) as Record<string, unknown>;
  } catch {
    json = undefined;
  }
  const { method = "", url = "", headers } = request;
  return { method, url, headers, body, json, left: leaving.signal };
}

/** The result of every job. */
const picture = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** Headers by which customers and proxies identify themselves. */
const foreign = [
  "authorization",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
  "cookie",
  "x-request-id",
  "request-id",
  "x-callback-url",
  "x-callback-id",
  "x-forwarded-for",
  "forwarded",
];

function violationsOf(
  { method, url, headers, body }: AskedVendor,
  expected: { readonly header: string; readonly value: string },
): string[] {
  const found: string[] = [];
  const at = `${method} ${url}`;
  if (headers[expected.header] !== expected.value) found.push(`${at}: not our credential`);
  for (const name of foreign) {
    if (name !== expected.header && name in headers) found.push(`${at}: header ${name}`);
  }
  const isResult = url.includes(":download");
  if (!isResult && headers["accept-encoding"] !== "identity")
    found.push(`${at}: may be compressed`);
  const all = url + JSON.stringify(headers) + body.toString("latin1");
  if (/uas_[0-9A-Za-z]{32}/.test(all)) found.push(`${at}: the customer's key`);
  if (/[?&](?:key|api-key)=/.test(url)) found.push(`${at}: a key in the query`);
  return found;
}

async function send(
  response: ServerResponse,
  credential: { readonly header: string; readonly secret: string },
  { status = 200, headers = {}, body = [], isCut = false }: VendorAnswer,
): Promise<void> {
  const echoed = { [credential.header]: credential.secret };
  response.writeHead(status, {
    ...hostile,
    ...echoed,
    "content-type": "application/json",
    ...headers,
  });
  response.flushHeaders();
  const pieces = typeof body === "string" || Buffer.isBuffer(body) ? [body] : body;
  for await (const piece of pieces) {
    if (response.destroyed) return;
    response.write(piece);
    // Lets each piece leave alone, so that they arrive as the test cut them.
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (isCut) response.destroy();
  else response.end();
}
