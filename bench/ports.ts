/** Free ports for the processes of the bench. */
import { createServer } from "node:net";

/**
 * Below those that systems give to outgoing connections, one of which could take a port first.
 * Benches that run beside each other begin at different ports, for the same reason.
 */
const ports = { first: 20_000, count: 12_000, perBench: 20 };

let nextPort = (process.pid * ports.perBench) % ports.count;

/** A port of 127.0.0.1 on which nothing listens. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = ports.first + (nextPort++ % ports.count);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
