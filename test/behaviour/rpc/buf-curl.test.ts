/** `buf curl` with only the address: it reads the contract by reflection. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { publicModel } from "../../support/gateway.ts";
import { findServices } from "../../contract/services.ts";
import { demoModel, operatorToken, useGateway } from "./harness.ts";

const fixture = useGateway();
const buf = join(import.meta.dirname, "../../../node_modules/.bin/buf");
// Not in the project: it would find the proto files themselves there.
const cwd = mkdtempSync(join(tmpdir(), "uas-buf-"));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

async function curl(protocol: string, path: string, ...more: string[]) {
  const args = ["curl", "--http2-prior-knowledge", "--protocol", protocol, ...more];
  const child = spawn(buf, [...args, `${fixture.gateway.internalUrl}${path}`], {
    cwd,
    env: { PATH: process.env["PATH"], HOME: cwd },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err, code] = await Promise.all([
    Array.fromAsync(child.stdout, String),
    Array.fromAsync(child.stderr, String),
    new Promise((resolve) => child.once("close", resolve)),
  ]);
  return { out: out.join(""), err: err.join(""), code };
}

const asOperator = ["--header", `authorization: Bearer ${operatorToken}`];

describe("buf curl", () => {
  it.each(["grpc", "connect", "grpcweb"])("calls by %s what reflection shows", async (protocol) => {
    const key = `x-api-key: ${fixture.customer.key}`;
    const path = "/uas.inference.v1.InferenceService/ListModels";
    const { out, err, code } = await curl(protocol, path, "--header", key, "-d", "{}");
    expect({ err, code }).toEqual({ err: "", code: 0 });
    const { models } = JSON.parse(out) as { models: Array<{ modelKey: string }> };
    expect(models.map(({ modelKey }) => modelKey)).toEqual([demoModel, publicModel]);
  });

  it("lists every service of the contract", async () => {
    const services = await findServices();
    const { out, code } = await curl("grpc", "", "--list-services");
    expect(code).toBe(0);
    const listed = out.trim().split("\n");
    expect(listed).toEqual(expect.arrayContaining(services.map(({ typeName }) => typeName)));
    expect(listed).toContain("grpc.health.v1.Health");
  });

  it("reads messages of every imported file, and shows a refusal with its detail", async () => {
    const path = "/uas.account.v1.AccountService/CreateAccount";
    const made = await curl("grpc", path, ...asOperator, "-d", '{"name":"by buf"}');
    expect(JSON.parse(made.out)).toMatchObject({ account: { name: "by buf" } });
    const refused = await curl("grpc", path, ...asOperator, "-d", '{"name":""}');
    expect(refused.code).not.toBe(0);
    expect(refused.err).toContain("invalid_argument");
    expect(refused.err).toContain("uas.error.v1.ErrorDetail");
  });
});
