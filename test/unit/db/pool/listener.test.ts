/** A process that listens must start, hear again and end, whatever becomes of its connection. */
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Listener } from "../../../../src/db/pool/listener.ts";
import { type DatabaseAddress, DatabaseServer } from "../../../../src/db/pool/server.ts";
import { createEmptyDatabase, type TestDatabase } from "../../../support/database.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";

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

/**
 * A listener behind the proxy, by default with a separate connection, and all received
 * notifications.
 */
function listener(
  channel = "news",
  url: DatabaseAddress = proxy.url,
): { readonly listener: Listener; readonly heard: string[] } {
  const heard: string[] = [];
  const onNotice = (payload: string): void => void heard.push(payload);
  return { heard, listener: new Listener({ url, channel, onNotice }) };
}

/** Asks the database, past the proxy. */
async function ask<Row extends object>(text: string, values: readonly string[]): Promise<Row[]> {
  const client = new Client(database.url);
  await client.connect();
  const { rows } = await client.query<Row>(text, [...values]);
  await client.end();
  return rows;
}

async function tell(payload: string, channel = "news"): Promise<void> {
  await ask("select pg_notify($1, $2)", [channel, payload]);
}

/** Returns the number of listening connections. */
async function connections(): Promise<number> {
  const text =
    "select pid from pg_stat_activity where application_name = $1 and datname = current_database()";
  return (await ask(text, ["uas-notifications"])).length;
}

/**
 * Notifies repeatedly until a listener receives it, because a restored connection shows no other
 * sign.
 */
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

describe("listeners of one process", () => {
  it("listeners share a connection, and each hears its own channel only", async () => {
    const servers = new DatabaseServer(proxy.url);
    const [news, more, weather] = [
      listener("news", servers),
      listener("news", servers),
      listener("weather", servers),
    ];
    const all = [news, more, weather];
    await Promise.all(all.map((each) => each.listener.start()));
    expect(await connections()).toBe(1);
    await tell("rain", "weather");
    await tell("an election");
    await expect.poll(() => all.map(({ heard }) => heard.length)).toEqual([1, 1, 1]);
    expect(all.map(({ heard }) => heard)).toEqual([["an election"], ["an election"], ["rain"]]);

    // The others hear on, until the last one ends the connection.
    await news.listener.close();
    await weather.listener.close();
    await tell("snow", "weather");
    await tell("a recount");
    await expect.poll(() => more.heard).toEqual(["an election", "a recount"]);
    expect([news.heard.length, weather.heard.length]).toEqual([1, 1]);
    await more.listener.close();
    await expect.poll(connections).toBe(0);
  });

  it("a lost connection is a gap for every listener, and all hear again on the next one", async () => {
    const servers = new DatabaseServer(proxy.url);
    const gaps = { news: 0, weather: 0 };
    const both = (["news", "weather"] as const).map((channel) => {
      const heard: string[] = [];
      const onNotice = (payload: string): void => void heard.push(payload);
      const onGap = (): void => void gaps[channel]++;
      return { channel, heard, listener: new Listener({ url: servers, channel, onNotice, onGap }) };
    });
    await Promise.all(both.map((each) => each.listener.start()));
    expect(gaps).toEqual({ news: 1, weather: 1 });
    proxy.cut();
    await expect.poll(() => Math.min(gaps.news, gaps.weather)).toBeGreaterThan(1);
    for (const { channel, heard } of both) {
      const isHeard = async (): Promise<boolean> => {
        await tell("again", channel);
        return heard.includes("again");
      };
      await expect.poll(isHeard).toBe(true);
    }
    expect(await connections()).toBe(1);
    await Promise.all(both.map((each) => each.listener.close()));
  });

  it("a listener that is closed before it listens keeps no caller waiting for its start", async () => {
    proxy.hang();
    const { listener: closed } = listener();
    const starting = closed.start();
    await closed.close();
    await starting;
    proxy.resume();
  });

  it("a listener that begins while the last one ends hears, and so does one that begins twice", async () => {
    const servers = new DatabaseServer(proxy.url);
    const [first, second] = [listener("news", servers), listener("news", servers)];
    await first.listener.start();
    const ending = first.listener.close();
    await second.listener.start();
    await second.listener.start();
    await ending;
    await expectHeard(second.heard, "still here");
    expect(first.heard).toEqual([]);
    await second.listener.close();
    await expect.poll(connections).toBe(0);
  });
});
