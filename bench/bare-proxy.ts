/**
 * Process: the baseline. Node's `http` and undici's `dispatch` pass bytes on without reading them.
 * Its arguments are the ports of vendors; it sends the port of its listener for each.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Dispatcher, Pool } from "undici";

class Pipe implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;
  #ended = false;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#response.once("close", () => {
      if (!this.#ended) controller.abort(new Error("the client left"));
    });
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    const {
      connection: _1,
      "keep-alive": _2,
      "transfer-encoding": _3,
      date: _4,
      ...rest
    } = headers;
    this.#response.writeHead(status, rest as Record<string, string>);
  }

  onResponseData(controller: Dispatcher.DispatchController, bytes: Buffer): void {
    if (this.#response.write(bytes)) return;
    controller.pause();
    this.#response.once("drain", () => controller.resume());
  }

  onResponseEnd(): void {
    this.#ended = true;
    this.#response.end();
  }

  onResponseError(): void {
    this.#ended = true;
    this.#response.destroy();
  }
}

function listen(vendorPort: number): Promise<number> {
  const pool = new Pool(`http://127.0.0.1:${vendorPort}`, { connections: null, pipelining: 1 });
  const server = createServer((request, response) => {
    pool.dispatch(
      {
        method: "POST",
        path: request.url ?? "/",
        headers: {
          "content-type": "application/json",
          "content-length": request.headers["content-length"],
        },
        body: request,
      },
      new Pipe(response),
    );
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}

process.once("disconnect", () => process.exit());
process.send?.(await Promise.all(process.argv.slice(2).map((port) => listen(Number(port)))));
