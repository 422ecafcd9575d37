/** Bad input never gets a 5xx, never hangs, never costs money (R-ERR-7), on every text route. */
import { describe, expect, it } from "vitest";
import { jsonNumbersMax } from "../../../src/core/limits.ts";
import { badRequests, changed, dense, good, nested, unknownKey } from "./bad-input-rows.ts";
import { errorOf, expectFree, publicModel, useGateway } from "../harness.ts";

const fixture = useGateway(() => ({ models: { [publicModel]: {}, closed: {} } }));

const routes = [
  "/v1/chat/completions",
  "/api/ai/chat/completions",
  "/api/ai/generate",
  "/api/ai/stream-generate",
];

describe.each(routes)("%s", (path) => {
  it.each(badRequests)("bad input is answered with $status: $name", async (row) => {
    const { gateway, customer, upstream } = fixture;
    const reply = await expectFree(gateway, customer, () =>
      fixture.send(row.query ? `${path}?${row.query}` : path, {
        method: row.method ?? "POST",
        headers: { "x-request-id": "bad-input", ...row.headers },
        ...(hasBody(row.method) && { body: row.body ?? good }),
      }),
    );
    expect(reply.status).toBe(row.status);
    const { message, code, type, param } = errorOf(reply);
    expect(code).toBe(row.code ?? "invalid_request");
    expect(type).toBe("invalid_request_error");
    expect(message).toEqual(expect.any(String));
    if (row.says) expect(message).toMatch(row.says);
    if (row.param) expect(param).toBe(row.param);
    expect(reply.headers["x-request-id"]).toBe("bad-input");
    if (row.status === 401) expect(reply.headers["x-should-retry"]).toBe("false");
    expect(reply.body.toString()).not.toContain(unknownKey);
    expect(upstream.requests).toHaveLength(0);
  });

  it("403: a model that the key may not use", async () => {
    const other = await fixture.gateway.customer({ models: [publicModel] });
    const reply = await expectFree(fixture.gateway, other, () =>
      fixture.send(path, {
        headers: { authorization: `Bearer ${other.key}` },
        body: changed({ model: "closed" }),
      }),
    );
    expect(reply.status).toBe(403);
    expect(errorOf(reply)).toMatchObject({ type: "access_denied", code: "access_denied" });
    expect(reply.headers["x-should-retry"]).toBe("false");
  });

  it("200: what is odd but right", async () => {
    const { key } = fixture.customer;
    const wrong = { "x-api-key": unknownKey };
    const odd: ReadonlyArray<[string, Readonly<Record<string, string>>, string]> = [
      [path, {}, nested(64)],
      [path, {}, dense("{}", 200_000)],
      [path, {}, dense("1", jsonNumbersMax)],
      [path, {}, ` \r\n\t${good} `],
      [path, { "content-type": "application/json; charset=utf-8" }, good],
      [path, { "content-type": "APPLICATION/JSON" }, good],
      [path, { "content-type": 'application/json;charset="UTF8"' }, good],
      [path, { "content-encoding": "identity" }, good],
      [path, {}, changed({ messages: [{ role: "user", content: "\u0000\ud83c\udf0d" }] })],
      [path, { authorization: `bearer   ${key}`, ...wrong }, good],
      [path, { authorization: "", "x-api-key": key }, good],
      [`${path}?api-key=${unknownKey}`, { authorization: "Basic x", "x-api-key": key }, good],
      [`${path}?api-key=${key}`, { authorization: "", "x-api-key": "" }, good],
    ];
    for (const [url, headers, body] of odd) {
      const reply = await fixture.send(url, { headers, body });
      expect([reply.status, url === path ? JSON.stringify(headers) : "query"]).toEqual([
        200,
        expect.anything(),
      ]);
    }
  });

  it("401: a wrong key in a higher slot is not helped by a right one below (R-AUTH-1)", async () => {
    const { key } = fixture.customer;
    const authorization = `Bearer ${unknownKey}`;
    const below: ReadonlyArray<[string, Readonly<Record<string, string>>]> = [
      [path, { authorization, "x-api-key": key }],
      [`${path}?api-key=${key}`, { authorization }],
      [`${path}?api-key=${key}`, { authorization: "", "x-api-key": unknownKey }],
    ];
    for (const [url, headers] of below) {
      expect((await fixture.send(url, { headers, body: good })).status).toBe(401);
    }
  });
});

/** Node's client frames no body of the other methods: it would be read as the next request. */
function hasBody(method = "POST"): boolean {
  return ["POST", "PUT", "PATCH"].includes(method);
}
