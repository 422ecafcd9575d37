/** Receivers of webhooks on 127.0.0.1: some answer after 20 to 80 ms, the others never. */
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { serverTls } from "../test/support/receiver.ts";
import { answerWith } from "./answer.ts";

/** What the process is asked to open. */
export interface ReceiverCounts {
  readonly healthy: number;
  readonly hung: number;
}

/** The ports, in order. */
export interface ReceiverPorts {
  readonly healthy: readonly number[];
  readonly hung: readonly number[];
}

/** When each event happened, and the milliseconds from there to its first arrival at a receiver that answers. */
export type Arrival = readonly [timeMs: number, delayMs: number];

/** By event. */
const arrivals = new Map<string, Arrival>();

answerWith({
  async listen({ healthy, hung }: ReceiverCounts): Promise<ReceiverPorts> {
    return { healthy: await listen(healthy, true), hung: await listen(hung, false) };
  },
  /** What has been measured so far. */
  arrivals: (): readonly Arrival[] => [...arrivals.values()],
});

function listen(count: number, isAnswering: boolean): Promise<number[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const server = isAnswering ? answering() : createServer(serverTls, () => {});
      server.on("tlsClientError", () => {});
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return (server.address() as AddressInfo).port;
    }),
  );
}

function answering(): Server {
  return createServer(serverTls, (request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => void pieces.push(piece));
    request.on("end", () => {
      const { timestamp } = JSON.parse(Buffer.concat(pieces).toString()) as { timestamp: string };
      const id = String(request.headers["webhook-id"]);
      const timeMs = Date.parse(timestamp);
      if (!arrivals.has(id)) arrivals.set(id, [timeMs, Date.now() - timeMs]);
      setTimeout(() => response.writeHead(204).end(), 20 + Math.random() * 60);
    });
  });
}
