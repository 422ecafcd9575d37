/** R-TSK-9: responses in the background outlive the process that accepted them. */
import OpenAI from "openai";
import type { ResponseStreamEvent } from "openai/resources/responses/responses";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../../support/database.ts";
import { type Gateway, startGateway } from "../../../support/gateway.ts";
import { hang } from "../../../support/upstream/behaviour.ts";
import { strictChat } from "../../../support/upstream/chat-strict.ts";
import { startUpstream, type Upstream } from "../../../support/upstream/upstream.ts";
import { ended } from "./harness.ts";

let database: TestDatabase;
let vendor: Upstream;
const gateways: Gateway[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  vendor = await startUpstream({ style: strictChat() });
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.close();
  await vendor.close();
  await database.close();
  expect(vendor.violations).toEqual([]);
});

/** A gateway on the one database, whose vendor takes one call at a time. */
async function start(): Promise<Gateway> {
  const { baseUrl, secret: apiKey } = vendor;
  const vendors = { sim: { baseUrl, apiKey, maxInFlight: 1 } };
  const gateway = await startGateway({
    vendors,
    database: { ...database, close: () => Promise.resolve() },
  });
  gateways.push(gateway);
  return gateway;
}

it("one that waits is made by another process, and read on there; one that was being made is free", async () => {
  const first = await start();
  const { key, accountId } = await first.customer();
  const openaiAt = ({ url }: Gateway): OpenAI =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  const asked = { model: "public-model", input: "Hi", background: true } as const;
  vendor.script(hang);
  const running = await openaiAt(first).responses.create(asked);
  await vendor.request(1);
  const waiting = await openaiAt(first).responses.create({ ...asked, stream: true });
  const events: ResponseStreamEvent[] = [];
  const reading = (async () => {
    for await (const event of waiting) events.push(event);
  })();
  await expect.poll(() => events.length).toBe(2);
  await Promise.all([first.app.close({ drainMs: 0 }), expect(reading).rejects.toThrow()]);

  const second = await start();
  const openai = openaiAt(second);
  const [begun] = events;
  const id = begun?.type === "response.created" ? begun.response.id : "";
  for await (const event of await openai.responses.retrieve(id, {
    stream: true,
    starting_after: 1,
  })) {
    events.push(event);
  }
  expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, at) => at));
  expect(events.at(-1)?.type).toBe("response.completed");
  expect((await ended(openai, id)).output_text).toContain("Hello there");
  expect(await ended(openai, running.id)).toMatchObject({
    status: "failed",
    error: { code: "upstream_submit_unknown" },
  });
  expect(vendor.requests).toHaveLength(2);
  const { held, balance } = await second.money(accountId);
  // 16 tokens of input, 8 cached ones and 15 of output.
  expect([held, 100_000_000_000n - balance]).toEqual([0n, 16n * 250n + 8n * 25n + 15n * 2_000n]);
});
