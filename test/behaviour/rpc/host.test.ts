/**
 * Answers of the internal listener, and of Connect on both listeners, to requests without exactly
 * one valid host.
 */
import { once } from "node:events";
import { connect } from "node:http2";
import { describe, expect, it, onTestFinished } from "vitest";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { sendBytes } from "../../support/raw-http.ts";
import { bearer, operatorToken, useGateway } from "./harness.ts";

const fixture = useGateway();

const listModels = `/${InferenceService.typeName}/ListModels`;

/** An RPC over HTTP/1 with these lines in its head. */
function rpcBytes(key: string, hosts: readonly string[], version = "1.1"): string {
  const lines = [
    `POST ${listModels} HTTP/${version}`,
    ...hosts.map((host) => `Host: ${host}`),
    `authorization: Bearer ${key}`,
    "content-type: application/json",
    "content-length: 2",
  ];
  return `${lines.join("\r\n")}\r\n\r\n{}`;
}

const malformed = ["", "a b", "a, b", "[::1", "%zz", "a/b", "u@a", "a:99999"];

const refused = [[], ["a", "a"], ...malformed.map((host) => [host])].map((hosts) => ({ hosts }));

describe.each(["url", "internalUrl"] as const)("Connect on the listener of %s", (at) => {
  it.each(refused)(
    "an RPC with the hosts $hosts gets 400 that names the header",
    async ({ hosts }) => {
      const bytes = rpcBytes(fixture.customer.key, hosts);
      const reply = await sendBytes(fixture.gateway[at], bytes);
      expect(reply.status, reply.body.toString()).toBe(400);
      expect(reply.body.toString()).toMatch(
        /The header `host` (?:is missing|occurs twice|is malf)/,
      );
      expect(reply.headers["connection"]).toBe("close");
    },
  );

  it.each(["x", "a_b", "gateway.example:8080", "[::1]:80"])(
    "an RPC with the host %s is answered",
    async (host) => {
      const reply = await sendBytes(fixture.gateway[at], rpcBytes(fixture.customer.key, [host]));
      expect(reply.status, reply.body.toString()).toBe(200);
    },
  );

  it("an RPC over HTTP/1.0 without a host is answered", async () => {
    const bytes = rpcBytes(fixture.customer.key, [], "1.0");
    const reply = await sendBytes(fixture.gateway[at], bytes);
    expect(reply.status, reply.body.toString()).toBe(200);
  });
});

describe("plain pages of the internal listener", () => {
  it.each(["/metrics", "/healthz"])("%s with two hosts gets 400", async (path) => {
    const bytes = `GET ${path} HTTP/1.1\r\nhost: a\r\nHost: b\r\n\r\n`;
    const reply = await sendBytes(fixture.gateway.internalUrl, bytes);
    expect(reply.status).toBe(400);
    expect(JSON.parse(reply.body.toString())).toMatchObject({ code: "invalid_argument" });
  });
});

it("a malformed authority over HTTP/2 gets 400, and the connection serves on", async () => {
  const session = connect(fixture.gateway.internalUrl);
  onTestFinished(() => session.destroy());
  const ask = async (authority: string): Promise<readonly [unknown, string]> => {
    const stream = session.request({
      ...bearer(operatorToken),
      ":method": "POST",
      ":path": listModels,
      ":authority": authority,
      "content-type": "application/json",
    });
    let status: unknown;
    stream.on("response", (head) => (status = head[":status"]));
    stream.on("error", () => {});
    stream.end("{}");
    const pieces: Buffer[] = [];
    stream.on("data", (piece: Buffer) => pieces.push(piece));
    await once(stream, "close");
    return [status, Buffer.concat(pieces).toString()];
  };
  expect(await ask("[::1")).toEqual([400, expect.stringContaining("`host` is malformed")]);
  expect((await ask("gateway.example"))[0]).toBe(200);
});
