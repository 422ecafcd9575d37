/** A vendor on a real socket: it records requests and answers as scripted. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import type { VendorConfig } from "../../../src/config/config.ts";
import type { VendorCall } from "../../../src/provider/vendor.ts";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";

/** A request as it arrived. */
export interface Arrived {
  readonly method: string;
  /** Path and query, as on the wire. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** The answer. */
export interface Answer {
  readonly status?: number;
  readonly type?: string;
  /** In pieces, each written on its own. */
  readonly body: ReadonlyArray<string | Uint8Array>;
}

/** A listener that runs. */
export interface Listener {
  /** Its origin, without a trailing slash. */
  readonly origin: string;
  readonly requests: Arrived[];
  close(): Promise<void>;
}

/** Listens on a free port of this machine. */
export async function listen(answer: (request: Arrived) => Answer): Promise<Listener> {
  const requests: Arrived[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const arrived = { method, url, headers, body: Buffer.concat(pieces).toString() };
      requests.push(arrived);
      const { status = 200, type = "application/json", body } = answer(arrived);
      response.writeHead(status, { "content-type": type });
      for (const piece of body) response.write(piece);
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A vendor's configuration, with what the test changes. */
export function vendorConfig(changes: Partial<VendorConfig>): VendorConfig {
  return {
    name: "acme",
    kind: "openai",
    baseUrl: "http://127.0.0.1:1",
    apiKey: "sk-operators-own",
    dialects: undefined,
    timeouts: { connectMs: 2_000, firstByteMs: 2_000, idleMs: 2_000 },
    maxInFlight: undefined,
    pollsPerSecond: undefined,
    onDisconnect: "abort",
    nativePrefix: undefined,
    runBaseUrl: undefined,
    ...changes,
  };
}

/** A call, with what the test changes. */
export function vendorCall(changes: Partial<VendorCall>): VendorCall {
  return {
    dialect: Dialect.CHAT_COMPLETIONS,
    model: "model-1",
    query: "",
    headers: {},
    body: [Buffer.from("{}")],
    stream: false,
    signal: new AbortController().signal,
    ...changes,
  };
}
