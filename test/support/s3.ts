/** A server that speaks S3, on this machine. */
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { S3StorageConfig } from "../../src/config/config.ts";

/** The used part of s3rver, which has no types. */
interface S3rver {
  run(): Promise<{ readonly port: number }>;
  close(): Promise<void>;
  readonly httpServer: { closeAllConnections(): void };
  use(layer: (context: Context, next: () => Promise<void>) => Promise<void>): void;
}

interface Context {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  status: number;
}

/** A running server with one bucket. */
export interface S3Server {
  readonly config: S3StorageConfig;
  /** `METHOD query-words` of the requests so far. */
  readonly requests: string[];
  /** Receives each request; a returned status is its answer. Default: no refusal. */
  refuse: (request: string) => number | undefined;
  close(): Promise<void>;
}

/** Starts one on a free port. */
export async function startS3(): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), "uas-s3-"));
  const Server = createRequire(import.meta.url)("@20minutes/s3rver") as new (
    options: object,
  ) => S3rver;
  const server = new Server({
    address: "127.0.0.1",
    port: 0,
    silent: true,
    directory,
    configureBuckets: [{ name: "results" }],
  });
  // The routes are already registered, so this is inserted before them.
  const layers = (server as unknown as { middleware: unknown[] }).middleware;
  server.use(async (context, next) => {
    const words = Object.keys(context.query).filter((word) => word !== "x-id");
    const request = [context.method, ...words].join(" ");
    started.requests.push(request);
    const status = started.refuse(request);
    if (status === undefined) await next();
    else context.status = status;
  });
  layers.unshift(layers.pop());
  const { port } = await server.run();
  const started: S3Server = {
    config: {
      kind: "s3",
      endpoint: `http://127.0.0.1:${port}`,
      region: "us-east-1",
      bucket: "results",
      // The credentials of s3rver.
      accessKeyId: "S3RVER",
      secretAccessKey: "S3RVER",
      forcePathStyle: true,
    },
    requests: [],
    refuse: () => undefined,
    async close() {
      const closed = server.close();
      server.httpServer.closeAllConnections();
      await closed;
      rmSync(directory, { recursive: true, force: true });
    },
  };
  return started;
}
