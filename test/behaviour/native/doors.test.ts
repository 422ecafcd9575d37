/** Common checks of every native prefix: the caller, and the form of the path. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { Customer } from "../../support/gateway.ts";
import { type NativeGateway, startGeminiGateway } from "./gemini-gateway.ts";
import { geminiReply } from "./gemini-replies.ts";

let gateway: NativeGateway;
let customer: Customer;

beforeAll(async () => {
  gateway = await startGeminiGateway();
  customer = await gateway.customer();
  gateway.vendor.answer(() => ({ body: geminiReply }));
});

beforeEach(() => gateway.vendor.clear());

afterAll(async () => {
  expect(gateway.vendor.violations).toEqual([]);
  await gateway.close();
});

const path = "/gemini/v1beta/models/gemini-x:generateContent";
const init = { method: "POST", body: '{"contents":[{"parts":[{"text":"Hi"}]}]}' };

/** A request as these bytes: no client library would send some of them. */
async function raw(target: string, headers: Readonly<Record<string, string>> = {}) {
  const { hostname, port } = new URL(gateway.url);
  const socket = connect(Number(port), hostname);
  const lines = Object.entries({ host: "x", ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  const head = [`POST ${target} HTTP/1.1`, ...lines, "content-length: 2", "connection: close"];
  socket.write(`${head.join("\r\n")}\r\n\r\n{}`);
  let text = "";
  socket.setEncoding("utf8").on("data", (piece: string) => void (text += piece));
  await once(socket, "close");
  return { status: Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1]), text };
}

test("R-AUTH-1: the platform's three credential locations come first, the vendor's own after them", async () => {
  const { key } = customer;
  const wrong = "uas_00000000000000000000000000000000";
  const rows: readonly (readonly [number, string, Record<string, string>])[] = [
    [200, "", { authorization: `Bearer ${key}` }],
    [200, "", { "x-api-key": key }],
    [200, `?api-key=${key}`, {}],
    [200, "", { "x-goog-api-key": key }],
    [200, `?key=${key}`, {}],
    // The highest one that is there decides, also when it is wrong.
    [401, "", { authorization: `Bearer ${wrong}`, "x-goog-api-key": key }],
    [401, `?key=${key}`, { "x-api-key": wrong }],
    [401, `?api-key=${wrong}`, { "x-goog-api-key": key }],
    [401, `?key=${key}`, { "x-goog-api-key": wrong }],
    [200, `?key=${wrong}`, { "x-goog-api-key": key }],
    // Empty ones and other schemes count as absent.
    [200, "", { authorization: "Basic abc", "x-goog-api-key": key }],
    [200, `?key=${key}`, { "x-goog-api-key": "" }],
    [401, "", {}],
    [401, "", { "x-goog-api-key": "" }],
  ];
  const got = await Promise.all(
    rows.map(async ([, query, headers]) => {
      const response = await fetch(gateway.url + path + query, { ...init, headers });
      if (response.status === 401) {
        const told = (await response.json()) as { error: { status: string } };
        expect(told.error.status).toBe("UNAUTHENTICATED");
      }
      return response.status;
    }),
  );
  expect(got).toEqual(rows.map(([status]) => status));
});

test("R-ID-4: a call with a key that was disabled is in the log of its account", async () => {
  const { keyId, key, accountId } = await gateway.customer();
  await gateway.keys.disableKey({ keyId });
  const headers = { "x-goog-api-key": key, "x-request-id": "disabled-key" };
  const response = await fetch(`${gateway.url}${path}?alt=json`, { ...init, headers });
  expect(response.status).toBe(401);
  expect(await response.json()).toMatchObject({ error: { message: "Invalid API Key" } });
  const { ending, ...call } = await gateway.call("disabled-key");
  expect(ending).toBe(CallEnding.KEY_DISABLED);
  expect(call).toMatchObject({ accountId, keyId, path, status: 401 });
});

test("R-ERR-7: a compressed body gets 415 in the vendor's form, and reaches no vendor", async () => {
  const headers = { "x-goog-api-key": customer.key, "content-encoding": "gzip" };
  const response = await fetch(gateway.url + path, { ...init, headers });
  expect(response.status).toBe(415);
  expect(await response.json()).toMatchObject({
    error: { code: 415, message: expect.stringContaining("content-encoding") },
  });
  expect(gateway.vendor.requests).toEqual([]);
});

test("R-AUTH-4: a key in the query stands in no log, and the answer in no cache", async () => {
  const response = await fetch(`${gateway.url}${path}?key=${customer.key}&alt=json`, init);
  expect(response.headers.get("cache-control")).toBe("no-store");
  expect(gateway.vendor.requests[0]?.url).toMatch(/generateContent\?alt=json$/);
  expect(gateway.log.join("")).not.toContain(customer.key);
});

test("R-VND-1, pitfall 5: undeclared and unusual paths are 404 and reach no vendor", async () => {
  const paths = [
    "/gemini/",
    "/gemini/v1beta/models",
    "/gemini/v1beta/models/gemini-x",
    "/gemini/v1beta/models/gemini-x:generateContent/",
    "/gemini/v1beta/models/gemini-x:predict",
    "/gemini/v1beta/files",
    "/gemini/v1beta/tunedModels/gemini-x:generateContent",
    "/gemini/v1beta/models/%67emini-x:generateContent",
    "/gemini/v1beta/models/gemini-x%3agenerateContent",
    "/gemini/v1beta%2fmodels/gemini-x:generateContent",
    "/gemini/v1beta/x/../models/gemini-x:generateContent",
    "/gemini/v1beta/./models/gemini-x:generateContent",
    "/gemini/../gemini/v1beta/models/gemini-x:generateContent",
    "/gemini//v1beta/models/gemini-x:generateContent",
    "/gemini/v1beta/models//gemini-x:generateContent",
    "/gemini/v1beta\\models/gemini-x:generateContent",
    "/gemini/v1beta/models/../../v1beta/models/gemini-x:generateContent",
    "/%67emini/v1beta/models/gemini-x:generateContent",
    "/gemini/https://elsewhere.test/v1beta/models/gemini-x:generateContent",
    "/gemini@elsewhere.test/v1beta/models/gemini-x:generateContent",
  ];
  for (const each of paths) {
    const { status } = await raw(each, { "x-goog-api-key": customer.key });
    expect([each, status]).toEqual([each, 404]);
  }
  const get = await fetch(gateway.url + path, { headers: { "x-goog-api-key": customer.key } });
  expect(get.status).toBe(404);
  expect(gateway.vendor.requests).toEqual([]);
});

test("the host header of a client is ignored", async () => {
  const headers = { host: "elsewhere.test", "x-goog-api-key": customer.key };
  const { status, text } = await raw(path, headers);
  expect([status, text.includes("elsewhere")]).toEqual([200, false]);
});

test("R-ID-1: the client's request id comes back, the vendor's and its own never do", async () => {
  const send = (headers: Record<string, string>) =>
    fetch(gateway.url + path, { ...init, headers: { "x-api-key": customer.key, ...headers } });
  expect((await send({ "x-request-id": "mine" })).headers.get("x-request-id")).toBe("mine");
  expect((await send({ "request-id": "other" })).headers.get("x-request-id")).toBe("other");
  expect((await send({})).headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  const refused = await fetch(gateway.url + path, { ...init, headers: { "x-request-id": "no" } });
  expect([refused.status, refused.headers.get("x-request-id")]).toEqual([401, "no"]);
});

test("R-ERR-7: bodies that are no JSON, too deep or too long are the client's fault", async () => {
  const send = (body: string | Buffer) =>
    fetch(gateway.url + path, { method: "POST", body, headers: { "x-api-key": customer.key } });
  const config = '{"generationConfig":{},"generation_config":{"maxOutputTokens":1}}';
  const deep = `{"a":${"[".repeat(70)}${"]".repeat(70)}}`;
  for (const body of ["", "no", "[]", '{"a":1}{', config, deep]) {
    expect([body, (await send(body)).status]).toEqual([body, 400]);
  }
  const long = await send(Buffer.alloc(20 * 1024 * 1024 + 1, 0x20));
  expect(long.status).toBe(413);
  expect(gateway.vendor.requests).toEqual([]);
});
