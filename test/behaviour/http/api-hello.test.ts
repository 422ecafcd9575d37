/** /api/hello: what Claude Code asks before its first call, without a key. */
import { expect, it } from "vitest";
import { json, useGateway } from "../harness.ts";

const fixture = useGateway();

it("/api/hello answers 200 without a key", async () => {
  const headers = { authorization: "" };
  const head = await fixture.send("/api/hello", { method: "HEAD", headers });
  expect([head.status, head.body.length]).toEqual([200, 0]);
  const get = await fixture.send("/api/hello", { method: "GET", headers });
  expect([get.status, json(get)]).toEqual([200, { message: "hello" }]);
});
