/** What all streams of a process keep of events that are not complete. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { eventBytesMax, unfinishedEventBytesMax } from "../../../src/core/limits.ts";
import { UnfinishedEvents } from "../../../src/routing/unfinished-events.ts";
import { type Customer, type Gateway, startGateway } from "../../support/gateway.ts";

it("the streams with the longest unfinished events end where a process keeps too many bytes of them", () => {
  const events = new UnfinishedEvents();
  const readers = [0.2, 0.6, 0.5].map((share) => {
    const reader = {
      place: -1,
      unfinishedBytes: share * unfinishedEventBytesMax,
      isGivenUp: false,
      giveUpEvent: () => void (reader.isGivenUp = true),
    };
    events.add(reader);
    onTestFinished(() => events.delete(reader));
    return reader;
  });
  events.check();
  expect(readers.map(({ isGivenUp }) => isGivenUp)).toEqual([false, true, false]);
});

describe("a vendor whose events do not end", () => {
  /** Just within the limit of one event. */
  const event = Buffer.alloc(eventBytesMax - 1024 * 1024, "x");
  const open: ServerResponse[] = [];
  const server = createServer((request, response) => {
    request.resume();
    open.push(response);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: ");
    response.write(event);
  });
  let gateway: Gateway;
  let customer: Customer;

  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    gateway = await startGateway({
      vendors: { hostile: { baseUrl, apiKey: "sk" } },
      models: {
        endless: {
          routes: [{ vendor: "hostile", model: "endless" }],
          retry: { attempts: 1, withinMs: 1 },
        },
      },
    });
    customer = await gateway.customer();
  });
  beforeEach(() => void open.splice(0));
  afterAll(async () => {
    await gateway?.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const count = Math.floor(unfinishedEventBytesMax / event.length) + 1;
  const post = async (path: string, body: object): Promise<Response> => {
    const headers = {
      authorization: `Bearer ${customer.key}`,
      "content-type": "application/json",
    };
    return fetch(`${gateway.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  };

  it("streams are counted before their first content, and a client of one that is ended gets 502", async () => {
    const messages = [{ role: "user", content: "Hi" }];
    const replies = Array.from({ length: count }, () =>
      post("/v1/chat/completions", { model: "endless", stream: true, messages }),
    );
    const first = await Promise.race(replies);
    expect([first.status, await first.text()]).toEqual([
      502,
      expect.stringContaining("sent an event that did not end"),
    ]);
    for (const response of open) response.destroy();
    await Promise.all(replies);
  });

  it("the streams of tasks are counted, too", async () => {
    const textParams = { messages: [{ role: "user", content: "Hi" }] };
    const polls = Array.from({ length: count }, async () => {
      const submitted = await post("/api/ai/tasks", { modelKey: "endless", textParams });
      const { taskId } = (await submitted.json()) as { taskId: string };
      for (;;) {
        const headers = { authorization: `Bearer ${customer.key}` };
        const polled = await fetch(`${gateway.url}/api/ai/tasks/${taskId}?wait=60`, { headers });
        const task = (await polled.json()) as { status: string; error?: { message: string } };
        if (task.status !== "progress") return task;
      }
    });
    expect(await Promise.race(polls)).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("sent an event that did not end") as string },
    });
    for (const response of open) response.destroy();
    await Promise.all(polls);
  });
});
