import { createServer, type Socket, type AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  createGuardedClient,
  type GuardedResult,
  type GuardOptions,
} from "../../../src/http/guarded-client.ts";
import { GuardFailure } from "../../../src/http/guard-failure.ts";
import { isPublicAddress } from "../../../src/http/public-address.ts";
import { readPublicUrl } from "../../../src/http/public-url.ts";
import { acceptedUrls, closedAnswers, refusedUrls } from "./guard-vectors.ts";

/** The inside: loopback sockets that must never see a connection, in both families. */
const inside = { connections: 0, port: 0, ports: [] as number[], close: async () => {} };

beforeAll(async () => {
  const servers = ["127.0.0.1", "::1"].map((host) => {
    const server = createServer((socket: Socket) => {
      inside.connections++;
      socket.destroy();
    });
    return { host, server };
  });
  for (const { host, server } of servers) {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(inside.port, host, resolve);
    });
    inside.port = (server.address() as AddressInfo).port;
  }
  inside.close = async () => {
    for (const { server } of servers) await new Promise((resolve) => server.close(resolve));
  };
});
afterAll(() => inside.close());

function kindOf({ outcome }: GuardedResult): string {
  return outcome instanceof GuardFailure ? outcome.kind : `status ${outcome.status}`;
}

describe("R-HOOK-5: decisions without a query", () => {
  it("has at least 150 vectors", () => {
    expect(refusedUrls.length + acceptedUrls.length + closedAnswers.length).toBeGreaterThan(200);
    expect(new Set(refusedUrls.map(([url]) => url)).size).toBe(refusedUrls.length);
  });

  it.each(refusedUrls)("the address %s is refused without a DNS query: %s", (url) => {
    const read = readPublicUrl(url);
    expect(read).toHaveProperty("problem");
  });

  it.each(acceptedUrls)(
    "the address %s is accepted without a DNS query, and sent to %s",
    (url, host) => {
      const read = readPublicUrl(url);
      expect("url" in read ? read.url.host : read.problem).toBe(host);
      expect("url" in read && read.url.hash).toBe("");
    },
  );

  it("a listed host is exempt from the rules about hosts, and from no other", () => {
    const listed = ["localhost", "127.0.0.1", "[::1]"];
    expect(readPublicUrl("https://localhost:8443/", listed)).toHaveProperty("url");
    expect(readPublicUrl("https://2130706433:8443/", listed)).toHaveProperty("url");
    expect(readPublicUrl("https://[::1]/", listed)).toHaveProperty("url");
    for (const url of [
      "http://localhost/",
      "https://u@localhost/",
      "https://localhost:25/",
      "https://127.0.0.2/",
      "https://a.localhost/",
      "https://localhost./",
    ]) {
      expect(readPublicUrl(url, listed), url).toHaveProperty("problem");
    }
  });

  it("an address is public only where it is one", () => {
    for (const text of [
      "",
      "x",
      "1.2.3",
      "fe80::1%lo",
      "2606:4700::1%lo",
      "[2606:4700::1]",
      "8.8.8.8 ",
    ])
      expect(isPublicAddress(text), text).toBe(false);
  });
});

describe("R-HOOK-5: nothing reaches a private address", () => {
  beforeEach(() => void (inside.connections = 0));

  it("none of the refused addresses gets a connection, aimed at a port with a listener", async () => {
    const client = createGuardedClient();
    const aimed = refusedUrls.map(([url]) => {
      const parsed = URL.parse(url);
      if (parsed === null || !parsed.host || parsed.port) return url;
      parsed.port = String(inside.port);
      return parsed.href;
    });
    const results = await Promise.all(aimed.map((url) => client.send({ method: "GET", url })));
    expect(results.filter((result) => kindOf(result) !== "blocked_address")).toEqual([]);
    expect(
      results.every(({ times }) => times.addressClass === "blocked" && times.connectMs === 0),
    ).toBe(true);
    expect(inside.connections).toBe(0);
  });

  it.each(closedAnswers)("0 connections where the name resolves to %s", async (address) => {
    for (const answer of [[address], ["8.8.8.8", address], [address, "2606:4700:4700::1111"]]) {
      const client = createGuardedClient({ resolve: async () => answer });
      const url = `https://rebind.example:${inside.port}/`;
      const result = await client.send({ method: "POST", url, body: Buffer.from("x") });
      expect(kindOf(result)).toBe("blocked_address");
    }
    expect(inside.connections).toBe(0);
  });

  it("a name that resolves otherwise the second time is resolved only once", async () => {
    let questions = 0;
    // Public first, loopback ever after: a second look-up at the connection would go there.
    const resolve = async (): Promise<string[]> =>
      questions++ === 0 ? ["192.0.3.1"] : ["127.0.0.1"];
    const client = createGuardedClient({ resolve });
    const url = `https://rebind.example:${inside.port}/`;
    const result = await client.send({ method: "GET", url, headMs: 200 });
    expect(["connect", "timeout"]).toContain(kindOf(result));
    expect({ questions, connections: inside.connections }).toEqual({
      questions: 1,
      connections: 0,
    });
    // And again, as the next delivery: the new answer is judged anew.
    expect(kindOf(await client.send({ method: "GET", url }))).toBe("blocked_address");
    expect(inside.connections).toBe(0);
  });

  it("this machine's own public address is not asked", async () => {
    const client = createGuardedClient({
      resolve: async () => ["192.0.3.7"],
      ownAddresses: () => ["192.0.3.7"],
    });
    const result = await client.send({ method: "GET", url: "https://self.example/" });
    expect(kindOf(result)).toBe("blocked_address");
  });

  it("names without an address, and resolvers that fail or hang, get the same answer", async () => {
    const answers: readonly GuardOptions["resolve"][] = [
      async () => [],
      () => Promise.reject(new Error("SERVFAIL from 10.0.0.53")),
    ];
    for (const resolve of answers) {
      const client = createGuardedClient({ ...(resolve && { resolve }) });
      expect(kindOf(await client.send({ method: "GET", url: "https://x.example/" }))).toBe("dns");
    }
    const hanging = createGuardedClient({ resolve: () => new Promise(() => {}) });
    const sent = hanging.send({ method: "GET", url: "https://x.example/", headMs: 20 });
    expect(kindOf(await sent)).toBe("timeout");
  });
});
