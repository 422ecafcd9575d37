/** Replicate's own client and the AI SDK's against the gateway, with nothing changed but the key and the address. */
import { createReplicate } from "@ai-sdk/replicate";
import { generateImage } from "ai";
import Replicate from "replicate";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Customer } from "../support/gateway.ts";
import { type ReplicateGateway, startReplicateGateway } from "./replicate-gateway.ts";

let gateway: ReplicateGateway;
let customer: Customer;
let client: Replicate;

beforeAll(async () => {
  gateway = await startReplicateGateway();
  customer = await gateway.customer();
  client = new Replicate({ auth: customer.key, baseUrl: `${gateway.url}/replicate/v1` });
});

afterAll(async () => {
  expect(gateway.vendor.violations).toEqual([]);
  await gateway.close();
});

test("replicate: run waits and gives the output", async () => {
  const output = await client.run("labs/flux", {
    input: { prompt: "a lighthouse" },
    wait: { mode: "block" },
    useFileOutput: false,
  } as Parameters<Replicate["run"]>[1]);
  expect(output).toEqual([`${gateway.vendor.origin}/files/out.png`]);
});

test("replicate: create, wait by polling, cancel, list with pages", async () => {
  const made = await client.predictions.create({
    model: "labs/flux",
    input: { prompt: "a" },
    webhook: "https://receiver.example/hook",
    webhook_events_filter: ["completed"],
  });
  expect(made.status).toBe("starting");
  const prediction = gateway.replicate.last();
  const waiting = client.wait(made, { interval: 50 });
  prediction.status = "succeeded";
  prediction.output = [`${gateway.vendor.origin}/files/a.png`];
  expect((await waiting).output).toEqual(prediction.output);
  const other = await client.predictions.create({ model: "labs/flux", input: {} });
  expect((await client.predictions.cancel(other.id)).status).toBe("canceled");
  const ids: string[] = [];
  for await (const page of client.paginate(() => client.predictions.list())) {
    ids.push(...page.map(({ id }) => id));
  }
  expect(ids.slice(0, 2)).toEqual([other.id, made.id]);
});

test("replicate: stream follows an address without a key", async () => {
  let text = "";
  for await (const { event, data } of client.stream("labs/flux", { input: { prompt: "a" } })) {
    if (event === "output") text += data;
  }
  expect(text).toBe("Hello");
  gateway.replicate.last().status = "failed";
});

test("replicate: files, models, and errors as its client reads them", async () => {
  const file = await client.files.create(Buffer.from("bytes"));
  expect(file.urls.get).toBe(`${gateway.url}/replicate/v1/files/file1`);
  expect((await client.files.get(file.id)).id).toBe("file1");
  expect((await client.models.get("labs", "flux")).name).toBe("flux");
  const poor = await gateway.customer({ balanceNanos: 0n });
  const broke = new Replicate({ auth: poor.key, baseUrl: `${gateway.url}/replicate/v1` });
  await expect(broke.predictions.create({ model: "labs/flux", input: {} })).rejects.toThrow(
    /402.*insufficient_balance/,
  );
});

test("@ai-sdk/replicate: an image", async () => {
  const replicate = createReplicate({
    apiToken: customer.key,
    baseURL: `${gateway.url}/replicate/v1`,
  });
  // Its own guard fetches no picture of this machine: one that comes with the answer.
  const prompt = "inline";
  const { image } = await generateImage({ model: replicate.image("labs/flux"), prompt });
  expect(image.mediaType).toBe("image/png");
});
