/**
 * Replies on deprecated paths, and to requests with deprecated fields, have headers that state it.
 */
import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { createRouterTransport } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TaskSchema } from "../../../gen/uas/task/v1/task_pb.ts";
import type { KeyCaller } from "../../../src/core/caller.ts";
import { BodyBudget } from "../../../src/edge/bodies/body-budget.ts";
import { RequestLog } from "../../../src/edge/request-log.ts";
import { createFacade } from "../../../src/edge/rest/facade.ts";
import { createMetrics } from "../../../src/observe/metrics.ts";
import { buildContract } from "../contract/edited-contract.ts";

const notice = (sunset: string): string =>
  `since: "0.3.0" since_date: "2027-01-31" sunset_date: "${sunset}" replacement: "use another"`;

const contract = buildContract([
  {
    file: "task/v1/task_service.proto",
    from: "rpc CancelTask(CancelTaskRequest) returns (CancelTaskResponse) {",
    to: `rpc CancelTask(CancelTaskRequest) returns (CancelTaskResponse) {
      option deprecated = true;
      option (uas.http.v1.deprecation) = {${notice("2027-07-31")}};`,
  },
  {
    file: "task/v1/task_service.proto",
    from: "message SubmitTaskRequest {",
    to: `message SubmitTaskRequest {
      // One.
      string former = 90 [deprecated = true, (uas.http.v1.field_deprecation) = {${notice("2027-09-30")}}];
      // Another.
      string oldest = 91 [deprecated = true, (uas.http.v1.field_deprecation) = {${notice("2027-08-31")}}];`,
  },
  {
    file: "inference/v1/inference_service.proto",
    from: 'path: "/v1/chat/completions"',
    to: `path: "/v1/chat/completions"
      deprecation: {${notice("2027-07-31")}}`,
  },
]);

const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, contract));
const services = ["uas.task.v1.TaskService", "uas.inference.v1.InferenceService"].map((name) => {
  const service = registry.getService(name);
  if (service === undefined) throw new Error(`no ${name}`);
  return service;
});
const exchange = services
  .flatMap(({ methods }) => methods)
  .filter(({ name }) => name === "Exchange");

let facade: FastifyInstance;
let url: string;
beforeAll(async () => {
  const notServed = (): never => {
    throw new Error("not served");
  };
  const caller = { kind: "key", keyId: "k", accountId: "a" } as unknown as KeyCaller;
  facade = await createFacade({
    services,
    transport: createRouterTransport(({ service }) => {
      for (const each of services) {
        const task = { task: create(TaskSchema, { taskId: "t" }) };
        const replies = { submitTask: () => task, cancelTask: () => task, getTask: () => task };
        service(each, replies as object);
      }
    }),
    authenticate: async () => caller,
    metrics: createMetrics(),
    log: pino({ level: "silent" }),
    requests: new RequestLog(pino({ level: "silent" })),
    isOpen: () => true,
    requireCapacity: () => {},
    stopping: new AbortController().signal,
    whyNotReady: async () => undefined,
    findFile: async () => undefined,
    direct: {
      wire: new Map(exchange.map((method) => [method, notServed])),
      native: notServed,
      followLink: notServed,
    },
    bodies: new BodyBudget(),
    natives: () => [],
    trustProxy: [],
  });
  url = await facade.listen({ host: "127.0.0.1", port: 0 });
});
afterAll(() => facade?.close());

async function headersOf(path: string, body?: object): Promise<(string | null)[]> {
  const reply = await fetch(url + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: "Bearer uas_x", "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  await reply.arrayBuffer();
  return [reply.headers.get("deprecation"), reply.headers.get("sunset")];
}

const since = "@1801353600";

test("paths of a deprecated RPC send Deprecation and Sunset", async () => {
  expect(await headersOf("/api/ai/tasks/t/cancel", {})).toEqual([
    since,
    "Sat, 31 Jul 2027 00:00:00 GMT",
  ]);
});

test("a deprecated path of a model call sends them also with errors, and its other paths do not", async () => {
  const sent = { model: "m", messages: [] };
  expect(await headersOf("/v1/chat/completions", sent)).toEqual([
    since,
    "Sat, 31 Jul 2027 00:00:00 GMT",
  ]);
  expect(await headersOf("/v1/messages", sent)).toEqual([null, null]);
});

test("a request with deprecated fields gets the headers of the field that ends first", async () => {
  expect(await headersOf("/api/ai/tasks", { former: "x", oldest: "y" })).toEqual([
    since,
    "Tue, 31 Aug 2027 00:00:00 GMT",
  ]);
});

test("requests without deprecated parts get no such headers", async () => {
  expect(await headersOf("/api/ai/tasks", { modelKey: "m" })).toEqual([null, null]);
  expect(await headersOf("/api/ai/tasks/t")).toEqual([null, null]);
});
