/** A vendor of chat completions with scripted answers for each credential and model. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request as it arrived. */
export interface VendorRequest {
  readonly key: string;
  readonly model: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly response: ServerResponse;
}

/** Answers a request; by default the caller has to end the response. */
export type VendorAnswer = (request: VendorRequest) => void;

/** A running vendor. */
export interface RoutingVendor {
  readonly baseUrl: string;
  readonly requests: VendorRequest[];
  /** Answer to each request. Default {@link completes}. */
  answer: VendorAnswer;
  /** Number of requests of each credential. */
  countByKey(): Readonly<Record<string, number>>;
  close(): Promise<void>;
}

export async function startVendor(): Promise<RoutingVendor> {
  const vendor: { answer: VendorAnswer } & Pick<RoutingVendor, "requests"> = {
    answer: completes,
    requests: [],
  };
  const server = createServer((incoming, response) => {
    void readBody(incoming).then((body) => {
      const key = (incoming.headers.authorization ?? "").replace("Bearer ", "");
      const request = { key, model: String(body["model"]), body, response };
      vendor.requests.push(request);
      vendor.answer(request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(vendor, {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    countByKey: () => {
      const counts: Record<string, number> = {};
      for (const { key } of vendor.requests) counts[key] = (counts[key] ?? 0) + 1;
      return counts;
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

async function readBody(incoming: IncomingMessage): Promise<Record<string, unknown>> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  return JSON.parse(Buffer.concat(pieces).toString()) as Record<string, unknown>;
}

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

/** Answers completely, streamed or not. */
export const completes: VendorAnswer = ({ body, model, response }) => {
  if (body["stream"] !== true) {
    const message = { role: "assistant", content: "Hello" };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    const reply = { id: "c", object: "chat.completion", created: 1, model, choices, usage };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(reply));
    return;
  }
  beginsStream({ response, model });
  response.write(event(model, { content: "Hello" }));
  response.write(event(model, {}, "stop"));
  response.write(usageEvent(model));
  response.end("data: [DONE]\n\n");
};

/** Sends the head and the role of a stream, and nothing more. */
export function beginsStream({ response, model }: Pick<VendorRequest, "response" | "model">): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(event(model, { role: "assistant", content: "" }));
}

/** The event that reports the usage of a stream. */
export function usageEvent(model: string): string {
  return `data: ${JSON.stringify({ ...chunk(model, []), usage })}\n\n`;
}

export function event(model: string, delta: object, finish: string | null = null): string {
  return `data: ${JSON.stringify(chunk(model, [{ index: 0, delta, finish_reason: finish }]))}\n\n`;
}

function chunk(model: string, choices: readonly object[]): object {
  return { id: "c", object: "chat.completion.chunk", created: 1, model, choices };
}

/** Refuses with a status. */
export function refuses(
  status: number,
  headers: Readonly<Record<string, string>> = {},
  code: string | null = null,
): VendorAnswer {
  return ({ response }) => {
    const error = { message: `refused with ${status}`, type: "x", code };
    response
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(JSON.stringify({ error }));
  };
}
