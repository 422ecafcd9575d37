/** A client that disconnects on demand. */
import { request as httpRequest } from "node:http";
import { bearer } from "../rpc/harness.ts";
import type { Gateway } from "../../support/gateway.ts";
import { newRequestId } from "../harness.ts";

/** Sends a request on a new connection, and collects the reply until it disconnects. */
export class Leaver {
  readonly requestId = newRequestId();
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>;
  body = "";
  readonly #request: ReturnType<typeof httpRequest>;
  #onBytes: () => void = () => {};

  constructor(url: URL, { key, body }: { readonly key: string; readonly body: object }) {
    const headers = {
      ...bearer(key),
      "content-type": "application/json",
      "x-request-id": this.requestId,
    };
    this.#request = httpRequest(url, { method: "POST", headers, agent: false });
    this.closed = new Promise((resolve) => this.#request.once("close", resolve));
    this.#request.on("error", () => {});
    this.#request.on("response", (response) => {
      response.on("error", () => {});
      response.on("data", (piece: Buffer) => {
        this.body += piece.toString();
        this.#onBytes();
      });
    });
    this.#request.end(JSON.stringify(body));
  }

  /** Resolves once the reply contains this text. */
  async got(text: string): Promise<void> {
    while (!this.body.includes(text)) {
      await new Promise<void>((resolve) => {
        this.#onBytes = resolve;
      });
    }
  }

  leave(): Promise<void> {
    this.#request.destroy();
    return this.closed;
  }
}

/**
 * The number of replies that a gateway reads although their clients have disconnected; -1: it does
 * not say.
 */
export async function detachedReplies({ app }: Pick<Gateway, "app">): Promise<number> {
  const metric = app.metrics.registry.getSingleMetric("uas_replies_drained");
  return (await metric?.get())?.values[0]?.value ?? -1;
}
