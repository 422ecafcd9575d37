/** Nothing that others wrote runs in a browser at an address of the gateway. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type RestRoute, routeTable } from "../../../src/edge/rest/route-table.ts";
import { findServices } from "../../contract/services.ts";
import {
  type HostileGateway,
  startHostileGateway,
  type VendorName,
} from "../native/hostile-gateway.ts";
import type { Customer } from "../../support/gateway.ts";
import { type RawReply, type RawRequest, send, sendBytes } from "../../support/raw-http.ts";

let gateway: HostileGateway;
let customer: Customer;
const routes: readonly RestRoute[] = routeTable(await findServices());
const page = "<!doctype html><script>document.title = 'ran'</script>";

beforeAll(async () => {
  gateway = await startHostileGateway();
  customer = await gateway.customer();
});
beforeEach(() => answerWith("text/html"));
afterAll(() => gateway?.close());

/** Lets every vendor answer every request with a page. */
function answerWith(type: string, status = 200): void {
  for (const vendor of Object.values(gateway.vendors)) {
    vendor.answer(() => ({ status, headers: { "content-type": type }, body: page }));
  }
}

/** Returns the faults of a reply, which may be opened in a browser. */
function faultsOf({ status, headers }: RawReply): string[] {
  const { "content-type": type, "content-disposition": disposition } = headers;
  const faults: string[] = [];
  if (headers["x-content-type-options"] !== "nosniff") faults.push("no nosniff");
  if (headers["content-security-policy"] !== "default-src 'none'; sandbox") {
    faults.push("no sandbox");
  }
  if (/html|xml|svg|script/i.test(type ?? "")) faults.push(`is ${type}`);
  const isShown = /^(?:application\/json|text\/event-stream|(?:image|audio|video)\/)/.test(
    type ?? "",
  );
  const isEmpty = status === 204 || status === 304 || headers["content-length"] === "0";
  if (!isShown && !isEmpty && disposition === undefined) faults.push(`${type} is no attachment`);
  return faults;
}

const key = (): Record<string, string> => ({ authorization: `Bearer ${customer.key}` });

async function expectInert(path: string, request: RawRequest): Promise<RawReply> {
  const reply = await send(`${gateway.url}${path}`, request);
  const { method = "POST", headers } = request;
  expect([method, path, headers, faultsOf(reply)]).toEqual([method, path, headers, []]);
  return reply;
}

describe("every reply outside the console", () => {
  test("a reply of every route is inert, with a key, without one, and by a wrong method", async () => {
    expect(routes.length).toBeGreaterThan(50);
    for (const { route, whenHeader } of routes) {
      const path = route.path.replace(/\{[^}]*\}/g, "x");
      const when = whenHeader === undefined ? {} : { [whenHeader]: "1" };
      const isRead = route.method === "GET";
      const body = isRead ? {} : { body: "{}" };
      const json: Record<string, string> = isRead ? {} : { "content-type": "application/json" };
      await expectInert(path, {
        method: route.method,
        headers: { ...key(), ...json, ...when },
        ...body,
      });
      await expectInert(path, { method: route.method, headers: { ...json, ...when }, ...body });
      await expectInert(path, { method: isRead ? "POST" : "GET", headers: { ...key(), ...when } });
      await expectInert(path, { method: "OPTIONS" });
    }
  });

  test.for([
    "/",
    "/nothing",
    "/%2e%2e/x",
    "/%zz",
    "/v1/nothing",
    "/healthz",
    "/readyz",
    "/api/hello",
    "/openapi.json",
    "/llms.txt",
    "/files/x.png",
    "/files/00000000000000000000000000.html",
    "/callbacks/x",
    "/metrics",
    "/gemini",
    "/gemini/",
    "/gemini/v1beta/nothing",
    "/replicate/_s/forged",
    "/console-not",
    "/console/rpc/uas.account.v1.SessionService/GetSession?encoding=json&message=%7B%7D",
    "/uas.account.v1.AccountService/GetAccount",
    "/uas.account.v1.AccountService/GetAccount?encoding=json&message=%7B%7D",
    "/uas.nothing.v1.None/None",
  ])("a reply to %s is inert by every method", async (path) => {
    for (const method of ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"]) {
      await expectInert(path, { method, headers: key() });
      await expectInert(path, { method, headers: { accept: "text/html" } });
    }
  });

  test("a refused WebSocket gets an inert reply", async () => {
    const upgrade = { connection: "upgrade", upgrade: "websocket" };
    for (const path of ["/v1/responses", "/v1/chat/completions", "/nothing"]) {
      const reply = await expectInert(path, { method: "GET", headers: upgrade });
      expect(reply.status).toBeGreaterThanOrEqual(400);
    }
    await expectInert("/v1/responses", { method: "GET", headers: { ...key(), ...upgrade } });
  });

  test.for([
    "hello\r\n\r\n",
    "GET /healthz HTTP/1.1\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nhost: a b\r\n\r\n",
    "GET /v1/responses HTTP/1.1\r\nhost: a b\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nhost: x\r\nexpect: nothing\r\n\r\n",
    `GET /${"x".repeat(70_000)} HTTP/1.1\r\nhost: x\r\n\r\n`,
  ])("a reply to malformed HTTP is inert: %j", async (bytes) => {
    const reply = await sendBytes(gateway.url, bytes);
    expect([reply.status >= 400, faultsOf(reply)]).toEqual([true, []]);
  });
});

describe("a vendor's page", () => {
  const paths: Readonly<Record<VendorName, readonly (readonly [string, string, string?])[]>> = {
    gemini: [
      ["GET", "/v1beta/models/gemini-x"],
      ["POST", "/v1beta/models/gemini-x:countTokens", '{"contents": []}'],
      ["POST", "/v1beta/models/gemini-x:generateContent", '{"contents": []}'],
      ["POST", "/v1beta/models/gemini-x:streamGenerateContent?alt=sse", '{"contents": []}'],
      ["POST", "/upload/v1beta/files", "bytes"],
    ],
    dashscope: [
      ["GET", "/api/v1/uploads?action=getPolicy&model=qwen-plus"],
      ["POST", "/compatible-mode/v1/chat/completions", '{"model": "qwen-plus", "messages": []}'],
    ],
    fal: [["POST", "/fal-ai/flux", '{"prompt": "x"}']],
    replicate: [
      ["GET", "/v1/models/labs/flux"],
      ["GET", "/v1/models/labs/flux/versions"],
      ["POST", "/v1/files", "bytes"],
      ["POST", "/v1/models/labs/flux/predictions", '{"input": {"prompt": "x"}}'],
    ],
  };
  const requests = Object.entries(paths).flatMap(([vendor, own]) =>
    own.map(([method, path, body]) => ({ method, path: `/${vendor}${path}`, body })),
  );

  test.for(["text/html", "image/svg+xml", "application/xhtml+xml", "text/xml", "text/javascript"])(
    "a vendor's page of type %s never has this type, whatever its status",
    async (type) => {
      for (const status of [200, 206, 400, 404, 500]) {
        answerWith(type, status);
        for (const { method, path, body } of requests) {
          const headers = { ...key(), "content-type": "application/json" };
          await expectInert(path, { method, headers, ...(body !== undefined && { body }) });
        }
      }
    },
  );

  test("a vendor's page reaches its customer as bytes, unchanged", async () => {
    const reply = await expectInert("/replicate/v1/models/labs/flux", {
      method: "GET",
      headers: key(),
    });
    expect([reply.status, reply.headers["content-type"], reply.body.toString()]).toEqual([
      200,
      "application/octet-stream",
      page,
    ]);
  });

  test("a vendor's picture is shown as a picture", async () => {
    answerWith("image/png");
    const reply = await expectInert("/replicate/v1/models/labs/flux", {
      method: "GET",
      headers: key(),
    });
    expect(reply.headers["content-type"]).toBe("image/png");
    expect(reply.headers).not.toHaveProperty("content-disposition");
  });
});
