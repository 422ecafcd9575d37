import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { DownloadLimits } from "../../../src/result/download.ts";
import type { ResultFailureKind, ResultSource } from "../../../src/result/result.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { about, openTestResults, readBack, type TestResults } from "./support.ts";

const png = Buffer.from("\x89PNG\r\n\x1a\nand so on", "latin1");

/** A vendor on this machine: no TLS, no public address. */
interface Vendor {
  readonly origin: string;
  readonly seen: IncomingMessage[];
  answer: (request: IncomingMessage, response: ServerResponse) => void;
  close(): Promise<void>;
}

let results: TestResults;
let receiver: Receiver;
let vendor: Vendor;

beforeAll(async () => {
  results = await openTestResults();
  [receiver, vendor] = await Promise.all([startReceiver(), startVendor()]);
});
afterAll(() => Promise.all([results.close(), receiver.close(), vendor.close()]));
beforeEach(() => {
  receiver.behave((_received, response) => void response.writeHead(200).end(png));
  vendor.answer = (_request, response) => void response.writeHead(200).end(png);
  vendor.seen.length = 0;
});
afterEach(() => {
  expect(results.incoming()).toEqual([]);
});

async function startVendor(): Promise<Vendor> {
  const server = createServer((request, response) => {
    started.seen.push(request);
    started.answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const started: Vendor = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen: [],
    answer: () => {},
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return started;
}

/** Stores a result and returns the outcome. */
async function outcome(source: ResultSource, limits: DownloadLimits = {}, signal?: AbortSignal) {
  const stored = results
    .also({ limits })
    .store(source, { ...about, ...(signal !== undefined && { signal }) });
  return stored.then(
    ({ token, contentType }) => ({ token, contentType }),
    ({ kind, isFinal }: { kind: ResultFailureKind; isFinal: boolean }) => ({ kind, isFinal }),
  );
}

/** The same file, by both ways: through the guard, and from the vendor's own address. */
const ways = [
  [
    "guarded",
    () => ({ url: `${receiver.origin}/a.png?sig=1` }),
    (answer: (response: ServerResponse) => void) =>
      receiver.behave((_received, response) => answer(response)),
  ],
  [
    "vendor's own",
    () => ({ url: `${vendor.origin}/a.png?sig=1`, vendorUrl: `${vendor.origin}/v1` }),
    (answer: (response: ServerResponse) => void) => {
      vendor.answer = (_request, response) => answer(response);
    },
  ],
] as const;

describe.each(ways)("a result at an address, %s", (_way, source, behave) => {
  it("is stored while it arrives, typed by its bytes", async () => {
    behave((response) => {
      response.writeHead(200, { "content-type": "application/x-unknown" });
      for (const byte of png) response.write(Buffer.of(byte));
      response.end();
    });
    const stored = await outcome(source());
    expect(stored).toMatchObject({ contentType: "image/png" });
    expect(await readBack(results, "token" in stored ? stored.token : "")).toEqual(png);
  });

  it("is typed by its reply where the bytes are not conclusive", async () => {
    behave((response) => {
      response.writeHead(200, { "content-type": "audio/mpeg; rate=1" }).end("\xff\xf3");
    });
    expect(await outcome(source())).toMatchObject({ contentType: "audio/mpeg" });
  });

  it.each([
    [404, true],
    [403, true],
    [408, false],
    [429, false],
    [500, false],
    [206, false],
    [204, false],
  ])("status %i is no file", async (status, isFinal) => {
    behave((response) => void response.writeHead(status).end(status === 204 ? undefined : "no"));
    expect(await outcome(source())).toEqual({ kind: "refused", isFinal });
  });

  it("is limited in length, whether its length is declared or not", async () => {
    const tooLarge = { kind: "too_large", isFinal: true };
    behave((response) => void response.writeHead(200, { "content-length": "99" }).write("x"));
    expect(await outcome(source(), { bytesMax: 98 })).toEqual(tooLarge);
    behave((response) => {
      response.writeHead(200);
      response.write("x".repeat(60));
      response.end("x".repeat(39));
    });
    expect(await outcome(source(), { bytesMax: 98 })).toEqual(tooLarge);
    expect(await outcome(source(), { bytesMax: 99 })).toHaveProperty("token");
  });

  it("that is cut off is not stored", async () => {
    behave((response) => {
      response.writeHead(200, { "content-length": "99" });
      response.write("x", () => response.destroy());
    });
    expect(await outcome(source())).toEqual({ kind: "unreachable", isFinal: false });
  });

  it("that never arrives, stalls or never ends times out", async () => {
    const late = { kind: "timeout", isFinal: false };
    behave(() => {});
    expect(await outcome(source(), { headMs: 30 })).toEqual(late);
    behave((response) => void response.writeHead(200).write("x"));
    expect(await outcome(source(), { idleMs: 30 })).toEqual(late);
    behave((response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write("x"), 5);
      response.on("close", () => clearInterval(drip));
    });
    expect(await outcome(source(), { totalMs: 60 })).toEqual(late);
  });

  it("ends when its caller aborts", async () => {
    const given = new AbortController();
    behave((response) => {
      response.writeHead(200).write("x");
      given.abort();
    });
    expect(await outcome(source(), {}, given.signal)).toEqual({ kind: "aborted", isFinal: false });
  });

  it("a result in an unrequested encoding is not stored", async () => {
    behave((response) => {
      response.writeHead(200, { "content-encoding": "compress" }).end(png);
    });
    expect(await outcome(source())).toEqual({ kind: "refused", isFinal: false });
  });
});

describe("where a result may be", () => {
  const blocked = { kind: "blocked", isFinal: true };

  it("a private address is not requested, unless it is the vendor's own", async () => {
    const port = new URL(vendor.origin).port;
    for (const url of [
      `${vendor.origin}/a`,
      `https://127.0.0.1:${port}/a`,
      `http://localhost:${port}/a`,
      `https://169.254.169.254/latest/meta-data`,
      "https://[::ffff:10.0.0.1]/a",
      "file:///etc/passwd",
    ]) {
      // Another port of the vendor's host is another origin.
      expect(await outcome({ url, vendorUrl: "http://127.0.0.1:1/v1" })).toEqual(blocked);
    }
    expect(vendor.seen).toEqual([]);
    expect(await outcome({ url: "no address" })).toEqual({ kind: "refused", isFinal: true });
  });

  it("a redirect is followed and checked again, and gets no credential", async () => {
    const headers = { authorization: "Bearer secret" };
    const source = { url: `${vendor.origin}/a`, vendorUrl: vendor.origin, headers };
    vendor.answer = ({ url }, response) => {
      if (url === "/a") response.writeHead(302, { location: "/b" }).end("elsewhere");
      else response.writeHead(307, { location: `${receiver.origin}/c` }).end();
    };
    expect(await outcome(source)).toMatchObject({ contentType: "image/png" });
    expect(vendor.seen.map(({ headers: sent }) => sent.authorization)).toEqual([
      headers.authorization,
      headers.authorization,
    ]);
    expect(receiver.received.at(-1)?.path).toBe("/c");
    expect(receiver.received.at(-1)?.headers).not.toHaveProperty("authorization");
  });

  it("R-VND-4: a vendor with listed redirect hosts may redirect once, to these hosts only", async () => {
    const headers = { "x-goog-api-key": "secret" };
    const at = { url: `${vendor.origin}/a`, vendorUrl: vendor.origin, headers };
    vendor.answer = (_request, response) => {
      response.writeHead(302, { location: `${receiver.origin}/film` }).end();
    };
    const refused = { kind: "refused", isFinal: true };
    for (const hosts of [[], ["google.test"], [".ocalhost"], ["host"], [".localhost"]]) {
      expect(await outcome({ ...at, redirectHosts: hosts })).toEqual(refused);
    }
    const before = receiver.received.length;
    const followed = await outcome({ ...at, redirectHosts: ["localhost"] });
    expect(followed).toMatchObject({ contentType: "image/png" });
    expect(receiver.received.slice(before)).toMatchObject([{ path: "/film" }]);
    expect(receiver.received.at(-1)?.headers).not.toHaveProperty("x-goog-api-key");
    receiver.behave((_received, response) => void response.writeHead(302, { location: "/" }).end());
    expect(await outcome({ ...at, redirectHosts: ["localhost"] })).toMatchObject({
      kind: "refused",
    });
    expect(receiver.received).toHaveLength(before + 2);
  });

  it("a redirect into the private network is not followed", async () => {
    receiver.behave((_received, response) => {
      response.writeHead(302, { location: `${vendor.origin}/a` }).end();
    });
    expect(await outcome({ url: receiver.origin })).toEqual(blocked);
    expect(vendor.seen).toEqual([]);
  });

  it("redirects are limited in number", async () => {
    vendor.answer = (_request, response) => void response.writeHead(302, { location: "/" }).end();
    const source = { url: vendor.origin, vendorUrl: vendor.origin };
    expect(await outcome(source)).toMatchObject({ kind: "refused" });
    expect(vendor.seen).toHaveLength(4);
  });
});
