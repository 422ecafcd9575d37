/** A vendor of which a test says itself what it answers: for what the simulations do not have. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

/** A request as it came. */
export interface PlainRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** The answer. */
export interface PlainAnswer {
  /** Default 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Undefined means none ever comes. */
  readonly body: string | Buffer | undefined;
}

/** A running vendor. */
export interface PlainVendor {
  /** Without `/v1`. */
  readonly url: string;
  readonly requests: PlainRequest[];
  /** Answers all later requests. */
  answer: (request: PlainRequest) => PlainAnswer | Promise<PlainAnswer>;
  close(): Promise<void>;
}

/** Starts one on a free port of 127.0.0.1. */
export async function startPlainVendor(answer: PlainVendor["answer"]): Promise<PlainVendor> {
  const server = createServer((incoming, response) => {
    void (async () => {
      const pieces: Buffer[] = [];
      for await (const piece of incoming) pieces.push(piece as Buffer);
      const { method = "", url = "", headers } = incoming;
      const request = { method, url, headers, body: Buffer.concat(pieces).toString() };
      vendor.requests.push(request);
      const { status = 200, headers: more, body } = await vendor.answer(request);
      if (body === undefined) return;
      response.writeHead(status, { "content-type": "application/json", ...more });
      response.end(body);
    })().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const vendor: PlainVendor = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    answer,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return vendor;
}
