import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Ended,
  makePlace,
  type Place,
  Process,
  until,
} from "../../behaviour/lifecycle/process.ts";
import { createEmptyDatabase, type TestDatabase } from "../../support/database.ts";
import { install, type Installed, newestRelease, packCheckout, uas } from "./installed.ts";

/** The demo vendor, with a model whose tasks run for 20 s. */
const config = `version: 1
vendors: { demo: { kind: demo } }
models:
  chat: { type: TEXT, routes: [{ vendor: demo, model: chat }], max_output_tokens: 1024, price: { input: "0.25", output: "2.00" } }
  instant: { type: TEXT, routes: [{ vendor: demo, model: instant }], max_output_tokens: 1024, price: { input: "0.25", output: "2.00" } }
  image: { type: IMAGE, routes: [{ vendor: demo, model: image }], price: { image: "0.003" } }
  slow: { type: IMAGE, routes: [{ vendor: demo, model: slow }], price: { image: "0.003" } }
`;

let place: Place;
let database: TestDatabase;
let env: Readonly<Record<string, string>>;
let old: Installed;
let current: Installed;
let gateways: Process[];

beforeAll(async () => {
  place = makePlace({ "uas.yaml": config });
  database = await createEmptyDatabase();
  env = { DATABASE_URL: database.url, UAS_MASTER_KEY: Buffer.alloc(32, 7).toString("base64") };
  gateways = [];
  const packed = await packCheckout(join(place.folder, "packed"));
  current = await install(packed, join(place.folder, "current"));
  const release = newestRelease();
  // Before the first release, this checkout takes over from itself.
  old = release === undefined ? current : await install(release, join(place.folder, "old"));
}, 600_000);
afterAll(async () => {
  for (const gateway of gateways) await gateway.kill();
  await database.close();
  place.close();
});

/** Starts a gateway, and resolves when it serves. */
async function start({ program }: Installed): Promise<{ gateway: Process; url: string }> {
  const folder = join(place.folder, `data-${gateways.length}`);
  const gateway = new Process(place, { ...env, UAS_DATA_DIR: folder }, [program]);
  gateways.push(gateway);
  return { gateway, url: (await gateway.listening()).url };
}

/** Runs a command of an installation. @returns what it printed as JSON */
async function command(installed: Installed, ...args: string[]): Promise<Record<string, string>> {
  const written = await uas(installed, { place, env }, ...args, "--json");
  return JSON.parse(written) as Record<string, string>;
}

/** A client whose load balancer sends each request to one of the gateways that serve. */
class Client {
  urls: readonly string[] = [];
  /** Requests that did not end as they should. */
  readonly failures: string[] = [];
  calls = 0;
  #isStopped = false;
  #turn = 0;
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  async send(path: string, body?: unknown, key = this.#key): Promise<Response> {
    const url = this.urls[this.#turn++ % this.urls.length] ?? "";
    return await fetch(`${url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }

  /**
   * Makes calls one after the other until {@link Client.stop}: each holds an amount for its time.
   */
  async makeCalls(model: string, stream: boolean): Promise<void> {
    while (!this.#isStopped) {
      const messages = [{ role: "user", content: "Count to ten, please." }];
      const ended = await this.send("/v1/chat/completions", { model, stream, messages }).then(
        async (reply) => ({ status: reply.status, text: await reply.text() }),
        (error: unknown) => ({ status: 0, text: String(error) }),
      );
      this.calls++;
      const isWhole = stream ? ended.text.endsWith("data: [DONE]\n\n") : ended.status === 200;
      if (ended.status !== 200 || !isWhole) this.failures.push(JSON.stringify(ended));
    }
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Resolves after this many more calls. */
  async more(count: number): Promise<void> {
    const end = this.calls + count;
    await until(`${count} calls`, () => (this.calls >= end ? true : undefined));
  }

  async submit(model: string): Promise<string> {
    const body = { modelKey: model, imageParams: { prompt: "A lighthouse at dawn" } };
    const reply = await this.send("/api/ai/tasks", body);
    const text = await reply.text();
    expect({ status: reply.status, text }).toMatchObject({ status: 200 });
    return (JSON.parse(text) as { taskId: string }).taskId;
  }

  /** Resolves with the final state of a task. */
  async ended(taskId: string): Promise<string> {
    return await until(`task ${taskId} ends`, async () => {
      await sleep(200);
      const reply = await this.send(`/api/ai/tasks/${taskId}`);
      const { status } = (await reply.json()) as { status: string };
      return status === "progress" ? undefined : status;
    });
  }
}

/** As a load balancer: the new gateway gets calls before the old one loses them, and stops. */
async function replace(
  client: Client,
  from: { gateway: Process; url: string },
  installed: Installed,
): Promise<{ gateway: Process; url: string; ended: Ended }> {
  const to = await start(installed);
  client.urls = [from.url, to.url];
  await client.more(40);
  client.urls = [to.url];
  const ended = await from.gateway.stop();
  await client.more(40);
  return { ...to, ended };
}

test("a gateway takes over from the previous release under load, and gives back, without a failed call or a wrong charge", async () => {
  const first = await start(old);
  const { accountId = "" } = await command(
    old,
    "account",
    "create",
    "--name",
    "Load",
    "--balance",
    "100",
  );
  const { key = "" } = await command(old, "key", "create", "--account", accountId);
  const disabled = await command(old, "key", "create", "--account", accountId);
  await command(old, "key", "disable", disabled["keyId"] ?? "");
  const client = new Client(key);
  client.urls = [first.url];
  const loads = [
    ...Array.from({ length: 4 }, () => client.makeCalls("chat", true)),
    client.makeCalls("instant", false),
    client.makeCalls("instant", true),
  ];
  const done = await client.submit("image");
  expect(await client.ended(done)).toBe("completed");
  const running = await Promise.all(Array.from({ length: 5 }, () => client.submit("slow")));

  const second = await replace(client, first, current);
  expect(second.ended).toMatchObject({ code: 0, err: "" });
  expect(await client.ended(done)).toBe("completed");
  for (const taskId of running) expect(await client.ended(taskId)).toBe("completed");
  expect((await client.send("/v1/models", undefined, disabled["key"])).status).toBe(401);
  expect(await uas(current, { place, env }, "ledger", "audit", "--full")).toContain("ok:");

  const later = await client.submit("slow");
  const third = await replace(client, second, old);
  expect(third.ended).toMatchObject({ code: 0, err: "" });
  expect(await client.ended(later)).toBe("completed");
  client.stop();
  await Promise.all(loads);
  expect(client.failures).toEqual([]);
  expect((await third.gateway.stop()).code).toBe(0);
  expect(await uas(old, { place, env }, "ledger", "audit", "--full")).toContain("ok:");
  const account = await command(old, "account", "show", accountId);
  expect(Number(account["held"])).toBe(0);
  expect(Number(account["balance"])).toBeLessThan(100);
}, 900_000);
