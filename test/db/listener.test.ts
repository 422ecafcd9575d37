/** A process that listens must start, hear again and end, whatever becomes of its connection. */
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Listener } from "../../src/db/listener.ts";
import { createEmptyDatabase, type TestDatabase } from "../support/database.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";

let database: TestDatabase;
let proxy: FaultProxy;

beforeAll(async () => {
  database = await createEmptyDatabase();
  proxy = await startFaultProxy(database.url);
});

afterAll(async () => {
  await proxy.close();
  await database.close();
});

/** A listener behind the proxy, and all that it heard. */
function listener(): { readonly listener: Listener; readonly heard: string[] } {
  const heard: string[] = [];
  return {
    heard,
    listener: new Listener({
      url: proxy.url,
      channel: "news",
      applicationName: "uas-test-listener",
      onNotice: (payload) => heard.push(payload),
    }),
  };
}

async function tell(payload: string): Promise<void> {
  const client = new Client(database.url);
  await client.connect();
  await client.query("select pg_notify('news', $1)", [payload]);
  await client.end();
}

/** Tells again and again until somebody hears: there is no other sign that a connection has come back. */
async function expectHeard(heard: readonly string[], payload: string): Promise<void> {
  await expect
    .poll(
      async () => {
        await tell(payload);
        return heard;
      },
      { timeout: 30_000 },
    )
    .toContain(payload);
}

const faults: readonly (readonly [string, () => void, () => void])[] = [
  ["refused", () => proxy.refuse(true), () => proxy.refuse(false)],
  ["cut at its first answer", () => proxy.cutAtNextAnswer(), () => {}],
  ["never answered", () => proxy.hang(), () => proxy.resume()],
];

describe.each(faults)("a connection that is %s", (_name, break_, mend) => {
  it("does not keep the process from starting, and is replaced", async () => {
    const { listener: listening, heard } = listener();
    break_();
    await listening.start();
    mend();
    await expectHeard(heard, "first");
    proxy.cut();
    await expectHeard(heard, "second");
    await listening.close();
  });

  it("does not keep it from ending", async () => {
    const { listener: listening } = listener();
    await listening.start();
    break_();
    await listening.close();
    mend();
  });
});
