/** Health as load balancers ask for it. */
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GrpcClient, refusalOf } from "./grpc-client.ts";
import { useGateway } from "./harness.ts";

const fixture = useGateway();
let client: GrpcClient;
beforeAll(() => {
  client = new GrpcClient(fixture.gateway.internalUrl);
});
afterAll(() => client?.close());

describe("health", () => {
  it("reports the served services to every caller", async () => {
    for (const service of ["", "uas.inference.v1.InferenceService"]) {
      const { message } = await client.unary("/grpc.health.v1.Health/Check", { service });
      expect(message).toEqual({ status: "SERVING" });
    }
    const error = await refusalOf(
      client.unary("/grpc.health.v1.Health/Check", { service: "none" }),
    );
    expect(error.code).toBe(grpc.status.NOT_FOUND);
  });

  it("can be watched, also what does not exist", async () => {
    for (const [service, status] of [
      ["", "SERVING"],
      ["none", "SERVICE_UNKNOWN"],
    ]) {
      const stream = client.stream("/grpc.health.v1.Health/Watch", { service });
      stream.on("error", () => {});
      expect(await new Promise((resolve) => stream.once("data", resolve))).toEqual({ status });
      stream.cancel();
    }
  });
});
