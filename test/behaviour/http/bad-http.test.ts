/**
 * Requests that are bad as HTTP already: a 4xx or a closed connection, never a 5xx (R-ERR-7,
 * R-ID-1).
 */
import { describe, expect, it } from "vitest";
import { headerBytesMax } from "../../../src/core/limits.ts";
import { sendBytes } from "../../support/raw-http.ts";
import { good } from "./bad-input-rows.ts";
import { errorOf, publicModel, useGateway } from "../harness.ts";

const fixture = useGateway();

describe("bytes that no client sends", () => {
  const head = (...lines: string[]): string =>
    [
      "POST /v1/chat/completions HTTP/1.1",
      "host: x",
      `authorization: Bearer ${fixture.customer.key}`,
      "content-type: application/json",
      ...lines,
    ].join("\r\n");

  it.each([
    ["a line feed in a request id", "x-request-id: a\nx-injected: 1"],
    ["a carriage return in it", "x-request-id: a\rx-injected: 1"],
    ["a NUL in it", "x-request-id: a\u0000b"],
    ["a folded header", "x-request-id: a\r\n x-injected: 1"],
  ])("%s is never reflected", async (_name, line) => {
    const bytes = `${head(line, `content-length: ${good.length}`, "connection: close")}\r\n\r\n${good}`;
    const reply = await expectFreeOrCharged(() => sendBytes(fixture.gateway.url, bytes));
    expect(reply.status).toBeGreaterThanOrEqual(200);
    expect(reply.status).toBeLessThan(500);
    expect(reply.headers["x-injected"]).toBeUndefined();
    expect(reply.headers["x-request-id"] ?? "").toMatch(/^[\x21-\x7e]*$/);
  });

  it("431: a head over the limit", async () => {
    const bytes = `${head(`x-long: ${"x".repeat(headerBytesMax)}`)}\r\n\r\n`;
    expect((await sendBytes(fixture.gateway.url, bytes)).status).toBe(431);
  });

  it.each([
    ["no HTTP", "hello\r\n\r\n"],
    ["two lengths", "content-length: 1\r\ncontent-length: 2"],
    ["length and chunks", "content-length: 5\r\ntransfer-encoding: chunked"],
    ["a negative length", "content-length: -1"],
  ])("bytes that no client sends are a 400: %s", async (name, lines) => {
    const bytes = name === "no HTTP" ? lines : `${head(lines)}\r\n\r\n`;
    expect((await sendBytes(fixture.gateway.url, bytes)).status).toBe(400);
  });

  it("413: chunks that go on past the limit", async () => {
    const chunk = Buffer.alloc(1024 * 1024, 0x20);
    const framed = Buffer.concat([Buffer.from("100000\r\n"), chunk, Buffer.from("\r\n")]);
    const bytes = Buffer.concat([
      Buffer.from(`${head("transfer-encoding: chunked")}\r\n\r\n`),
      ...Array.from({ length: 21 }, () => framed),
    ]);
    const reply = await sendBytes(fixture.gateway.url, bytes);
    expect(reply.status).toBe(413);
    expect(errorOf(reply)["code"]).toBe("request_too_large");
  });
});

/** Some of these are lawful requests to a lenient parser: then they are charged, but never more. */
async function expectFreeOrCharged<T>(work: () => Promise<T>): Promise<T> {
  const result = await work();
  await expect
    .poll(() => fixture.gateway.money(fixture.customer.accountId))
    .toMatchObject({ held: 0n });
  return result;
}

describe("paths", () => {
  it.each([
    "/",
    "/v1",
    "/v1/nothing",
    "/api/ai/nothing",
    "/v1/chat/completions/",
    "/%2e%2e/etc",
    "/v1//models",
  ])("an unknown path is a 404: %s", async (path) => {
    const reply = await fixture.send(path, { body: good });
    expect(reply.status).toBe(404);
    expect(errorOf(reply)).toMatchObject({ code: "not_found", type: "invalid_request_error" });
  });

  it("repeats no key in its message about a path", async () => {
    const reply = await fixture.send(`/v1/nothing?api-key=${fixture.customer.key}`, { body: good });
    expect(reply.body.toString()).not.toContain(fixture.customer.key);
  });

  it.each([
    "?modelKey=x",
    "?model_key=x",
    "?pageSize=abc",
    "?page_size=-1",
    "?api-key=1&api-key=2",
  ])("GET with %s is no 5xx", async (query) => {
    for (const path of ["/v1/models", `/v1/models/${publicModel}`, "/api/ai/models"]) {
      const reply = await fixture.send(`${path}${query}`, { method: "GET" });
      expect(reply.status).toBeLessThan(500);
    }
  });
});
