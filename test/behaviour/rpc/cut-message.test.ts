/**
 * R-ERR-7: what clients do to a message is no failure of the gateway: neither in its log, nor in
 * their status.
 */
import { once } from "node:events";
import { Agent, createServer, type OutgoingHttpHeaders, request as ask } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import type { AddressInfo } from "node:net";
import { connect } from "node:net";
import { pino } from "pino";
import { expect, it, onTestFinished } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { unfinishedBodyBytesMax } from "../../../src/core/limits.ts";
import { BodyBudget } from "../../../src/edge/bodies/body-budget.ts";
import { createErrorMapping } from "../../../src/edge/rpc/interceptors.ts";
import { createRpcHandlers } from "../../../src/edge/rpc/router.ts";
import { send } from "../../support/raw-http.ts";
import { bearer, operatorToken, useGateway } from "./harness.ts";

const fixture = useGateway();

it("a client that disconnects within its message is not logged as an error", async () => {
  const log: string[] = [];
  const logger = pino({ level: "error" }, { write: (line: string) => void log.push(line) });
  const path = `/${CallService.typeName}/TailCalls`;
  const handle = createRpcHandlers({
    services: [{ service: CallService, implementation: {} }],
    interceptors: [createErrorMapping(logger)],
    requestGate: async () => {},
    bodies: new BodyBudget(),
    shutdownSignal: new AbortController().signal,
  }).get(path);
  const handled = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    void handle?.(request, response).then(handled.resolve);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/connect+json\r\n`;
  socket.write(`${head}content-length: 100\r\n\r\n\0\0`);
  await once(server, "request");
  socket.destroy();
  await handled.promise;
  expect(log).toEqual([]);
});

/** Sends bytes as the message of a gRPC call, and resolves with its status. */
async function grpcStatus(path: string, message: Buffer): Promise<string | undefined> {
  const session = connectHttp2(fixture.gateway.internalUrl);
  onTestFinished(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc+proto",
    te: "trailers",
    ...bearer(operatorToken),
  });
  stream.resume();
  stream.end(message);
  const [trailers] = (await once(stream, "trailers")) as [Record<string, string>];
  return trailers["grpc-status"];
}

it.each([
  ["of one reply", `/${AccountService.typeName}/CreateAccount`],
  ["of many replies", `/${CallService.typeName}/ExportCalls`],
])("a message %s that cannot be read is the caller's fault", async (_what, path) => {
  const unreadable = Buffer.from([0, 0, 0, 0, 4, 0x0a, 0x01, 0xff, 0xff]);
  expect(await grpcStatus(path, unreadable)).toBe("3");
  const compressed = Buffer.from([1, 0, 0, 0, 0]);
  expect(await grpcStatus(path, compressed)).toBe("3");
  expect(fixture.gateway.log.filter((line) => line.includes('"level":50'))).toEqual([]);
});

it.each([
  ["gzip", ";"],
  ["gzip", "\x1f\x8b\x08"],
  ["br", "\nx"],
])(
  "a message that ends within its compression (%s) is the caller's fault",
  async (encoding, body) => {
    const url = `${fixture.gateway.internalUrl}/${CallService.typeName}/GetCall`;
    const type = { "content-type": "application/proto", "content-encoding": encoding };
    const headers = { ...type, "connect-protocol-version": "1", ...bearer(operatorToken) };
    const reply = await send(url, { headers, body: Buffer.from(body, "latin1") });
    expect(reply.status).toBe(400);
    expect(JSON.parse(reply.body.toString())).toMatchObject({ code: "invalid_argument" });
    expect(fixture.gateway.log.filter((line) => line.includes('"level":50'))).toEqual([]);
  },
);

it.each(["url", "internalUrl"] as const)(
  "bytes behind the only message of a call do not hold up the next request of its connection, at the listener of %s",
  async (name) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const url = fixture.gateway[name];
    const exchange = (path: string, headers: OutgoingHttpHeaders, body: Buffer): Promise<number> =>
      new Promise((resolve, reject) => {
        const method = body.length > 0 ? "POST" : "GET";
        const asked = ask(`${url}${path}`, { method, agent, headers }, (response) => {
          response.resume().once("end", () => resolve(response.statusCode ?? 0));
        });
        asked.once("error", reject);
        asked.end(body);
      });
    const path = `/${InferenceService.typeName}/StreamGenerate`;
    const headers = { ...bearer(fixture.customer.key), "content-type": "application/connect+json" };
    const message = Buffer.concat([Buffer.from([0, 0, 0, 0, 2]), Buffer.from("{}")]);
    const body = Buffer.concat([message, Buffer.alloc(300_000, " ")]);
    // More often than the key's budget of unfinished bodies would last, if they were still counted.
    const times = Math.ceil((1.5 * unfinishedBodyBytesMax.owner) / body.length);
    for (let time = 0; time < times; time++) {
      expect(await exchange(path, headers, body)).toBe(200);
      expect(await exchange("/healthz", {}, Buffer.alloc(0))).toBe(200);
    }
  },
);
