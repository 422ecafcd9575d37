/** `UAS_CONSOLE_URL`: the console has its own host, and the API has the others. */
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { openBrowser } from "../../unit/account/browser.ts";
import { type Customer, type Gateway, startGateway } from "../../support/gateway.ts";
import { type RawRequest, send, sendBytes } from "../../support/raw-http.ts";

let gateway: Gateway;
let customer: Customer;
const api = "ai.example";
const consoleHost = "console.example";
const getSession = "/console/rpc/uas.account.v1.SessionService/GetSession";

beforeAll(async () => {
  gateway = await startGateway({
    vendors: { demo: { kind: "demo", baseUrl: "" } },
    settings: {
      publicUrl: `https://${api}`,
      consoleUrl: `https://${consoleHost}`,
      trustProxy: ["127.0.0.1"],
    },
  });
  customer = await gateway.customer();
});
afterAll(() => gateway?.close());

const statusAt = async (host: string, path: string, request: RawRequest = {}): Promise<number> => {
  const { headers = {}, ...rest } = request;
  const reply = await send(`${gateway.url}${path}`, {
    method: "GET",
    ...rest,
    headers: { host, ...headers },
  });
  return reply.status;
};

const withKey = () => ({ authorization: `Bearer ${customer.key}` });
const apiHosts = [api, "127.0.0.1", "localhost:8080", `not-${consoleHost}`, `${consoleHost}:8443`];
const consoleHosts = [consoleHost, "CONSOLE.example", `${consoleHost}:443`];

describe("the API", () => {
  const body = '{"model": "none", "messages": []}';
  const post = { method: "POST", body };
  const json = { "content-type": "application/json" };

  test.for(apiHosts)("the API answers at %s, and the console does not", async (host) => {
    const headers = withKey();
    expect(await statusAt(host, "/v1/models", { headers })).toBe(200);
    expect(await statusAt(host, getSession, { method: "POST", body: "{}" })).toBe(404);
    expect(await statusAt(host, getSession.replace("console", "%63onsole"))).toBe(404);
  });

  test.for(consoleHosts)("the API does not answer at %s, by any path", async (host) => {
    const headers = { ...withKey(), ...json };
    for (const path of [
      "/v1/models",
      "/v1/nothing",
      "/openapi.json",
      "/api/hello",
      "/files/00000000000000000000000000.png",
      "/callbacks/x",
      "/uas.inference.v1.InferenceService/ListModels?encoding=json&message=%7B%7D",
    ]) {
      expect([path, await statusAt(host, path, { headers })]).toEqual([path, 404]);
    }
    for (const path of ["/v1/chat/completions", "/v1/messages", "/v1/audio/speech"]) {
      const sent = { ...post, headers };
      expect([path, await statusAt(host, path, sent)]).toEqual([path, 404]);
      const withOrigin = { ...post, headers: { ...headers, origin: `https://${host}` } };
      expect([path, await statusAt(host, path, withOrigin)]).toEqual([path, 404]);
    }
  });

  test("the API takes no WebSocket on the console's host", async () => {
    const upgrade =
      "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
    const key = `authorization: Bearer ${customer.key}\r\n`;
    const open = (host: string) =>
      sendBytes(gateway.url, `GET /v1/responses HTTP/1.1\r\nhost: ${host}\r\n${upgrade}${key}\r\n`);
    expect((await open(consoleHost)).status).toBe(404);
  });

  test("the API is called by the console's pages, and by those of no other site", async () => {
    const allowed = async (origin: string) => {
      const headers = { host: api, origin, ...withKey() };
      const reply = await send(`${gateway.url}/v1/models`, { method: "GET", headers });
      return reply.headers["access-control-allow-origin"];
    };
    expect(await allowed(`https://${consoleHost}`)).toBe(`https://${consoleHost}`);
    expect(await allowed("https://evil.example")).toBeUndefined();
  });
});

describe("the console", () => {
  test("the console is entered at its host, by a cookie of this host only", async () => {
    const origin = `https://${consoleHost}`;
    const browser = openBrowser(gateway.url, { host: consoleHost, origin });
    const { token } = await createClient(UserService, gateway.app.transport).createSignInLink({});
    await browser.session.signInWithLink({ token });
    expect(browser.setCookies[0]).toMatch(/^__Host-uas_console=.*; Secure$/);
    expect((await browser.session.getSession({})).session?.isCurrent).toBe(true);
    const cookie = browser.cookie ?? "";
    const ask = (headers: Readonly<Record<string, string>>, host = consoleHost) =>
      statusAt(host, getSession, {
        method: "POST",
        body: "{}",
        headers: { cookie, "content-type": "application/json", ...headers },
      });
    expect(await ask({ origin })).toBe(200);
    expect(await ask({ "sec-fetch-site": "same-origin" })).toBe(200);
    expect(await ask({ origin: `https://${api}` })).toBe(403);
    expect(await ask({ "sec-fetch-site": "same-site" })).toBe(403);
    expect(await ask({ origin }, api)).toBe(404);
  });

  test("the console is found by the host that a trusted proxy forwards", async () => {
    const forwarded = { "x-forwarded-host": consoleHost };
    const path = `${getSession}?encoding=json&message=%7B%7D`;
    expect(await statusAt("internal:8080", path, { headers: forwarded })).toBe(401);
    expect(await statusAt("internal:8080", path)).toBe(404);
    const headers = { ...forwarded, ...withKey() };
    expect(await statusAt("internal:8080", "/v1/models", { headers })).toBe(404);
    expect(
      await statusAt("internal:8080", "/v1/chat/completions", {
        method: "POST",
        body: "{}",
        headers: { ...headers, "content-type": "application/json" },
      }),
    ).toBe(404);
  });

  test("the probes answer on every host", async () => {
    for (const host of [...apiHosts, ...consoleHosts]) {
      expect(await statusAt(host, "/healthz")).toBe(200);
      expect(await statusAt(host, "/readyz")).toBe(200);
    }
  });
});
