/** A webhook receiver on this machine: real TLS, and it does what the test says. */
import { readFileSync } from "node:fs";
import { type IncomingMessage, type ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

const folder = join(import.meta.dirname, "tls");

/** The authority that signed the receiver's certificate: a file, for `ca_file`. */
export const caFile = join(folder, "ca.pem");

/** The same as text. */
export const ca: string = readFileSync(caFile, "utf8");

/** Certificate and key of `localhost`, `127.0.0.1` and `::1`. */
export const serverTls = {
  cert: readFileSync(join(folder, "server.pem")),
  key: readFileSync(join(folder, "server-key.pem")),
} as const;

/** A request that arrived whole. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** Answers a request. `undefined`: 204. */
export type Behave = (received: Received, response: ServerResponse) => void;

/** A running receiver. */
export interface Receiver {
  /** `https://localhost:port`. */
  readonly origin: string;
  readonly port: number;
  readonly received: readonly Received[];
  /** Number of connections, including those that sent nothing. */
  readonly connections: () => number;
  /** Sets the behaviour for later requests. */
  behave(behave: Behave): void;
  /** Resolves as soon as `count` requests have arrived. */
  arrived(count: number): Promise<readonly Received[]>;
  close(): Promise<void>;
}

/** Starts one on a free port. Default behaviour: 204. */
export async function startReceiver(first: Behave = ok): Promise<Receiver> {
  const received: Received[] = [];
  const waiting = new Set<() => void>();
  let behave = first;
  let connections = 0;
  const server: Server = createServer(serverTls, (request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => void pieces.push(piece));
    request.on("error", () => {});
    request.on("end", () => {
      const { url = "", headers } = request;
      const arrival = { path: url, headers, body: Buffer.concat(pieces) };
      received.push(arrival);
      behave(arrival, response);
      for (const look of waiting) look();
    });
  });
  server.on("tlsClientError", () => {});
  server.on("connection", () => void connections++);
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `https://localhost:${port}`,
    port,
    received,
    connections: () => connections,
    behave: (next) => void (behave = next),
    arrived: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (received.length < count) return;
          waiting.delete(look);
          resolve(received);
        };
        waiting.add(look);
        look();
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Answers 204. */
export function ok(_received: Received, response: ServerResponse): void {
  response.writeHead(204).end();
}
