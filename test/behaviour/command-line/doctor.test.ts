import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { createRouterTransport } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ConfigService,
  GetConfigResponseSchema,
} from "../../../gen/uas/config/v1/config_service_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { inspectDatabase } from "../../../src/app/database-check.ts";
import { probeVendors } from "../../../src/app/vendor-probe.ts";
import type { Finding } from "../../../src/cli/doctor/finding.ts";
import { checkGateway } from "../../../src/cli/doctor/gateway.ts";
import { runCli } from "../../../src/cli/program.ts";
import { servedKinds } from "../../../src/provider/index.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";

let database: TestDatabase;
let vendor: PlainVendor;
let cwd: string;

beforeAll(async () => {
  database = await createTestDatabase();
  vendor = await startPlainVendor(({ headers }) =>
    headers.authorization === "Bearer right-credential"
      ? { body: JSON.stringify({ data: [{ id: "m" }] }) }
      : { status: 401, body: "{}" },
  );
  cwd = mkdtempSync(join(tmpdir(), "uas-doctor-"));
  const file = `version: 1
vendors: { v: { kind: openai, base_url: "${vendor.url}/v1", api_key: "\${env:K}" } }
models:
  m: { type: TEXT, routes: [{ vendor: v, model: m }], max_output_tokens: 9, price: { input: "1", output: "1" } }
`;
  writeFileSync(join(cwd, "uas.yaml"), file);
});

afterAll(async () => {
  await vendor.close();
  await database.close();
  rmSync(cwd, { recursive: true, force: true });
});

/** Runs the command; the result of each check is the worst of its findings. */
async function doctor(env: Readonly<Record<string, string>>) {
  let out = "";
  const never = () => Promise.reject(new Error("not needed"));
  const code = await runCli(["node", "uas", "doctor", "--json"], {
    env,
    cwd,
    version: "1.2.3",
    out: (text) => void (out += text),
    err: () => {},
    servedKinds: async () => servedKinds,
    app: async () => ({
      openBackend: never,
      serve: never,
      rotateMasterKey: never,
      probeVendors,
      inspectDatabase,
    }),
  });
  const { findings } = JSON.parse(out) as { readonly findings: readonly Finding[] };
  const of = (check: string) => findings.filter((each) => each.check === check);
  return { code, findings, of };
}

describe("uas doctor", () => {
  it("uas doctor finds no problem in an installation with a database and a vendor", async () => {
    const { code, findings, of } = await doctor({
      DATABASE_URL: database.url,
      K: "right-credential",
    });
    expect(findings.filter(({ result }) => result === "problem")).toEqual([]);
    const checks = ["configuration", "database", "migrations", "clock", "disk", "vendors"];
    const results = checks.map((check) => of(check).map(({ result }) => result));
    expect(results).toEqual(checks.map(() => ["ok"]));
    expect(of("webhook egress")).toMatchObject([{ result: "ok" }]);
    expect(code).toBe(0);
  });

  it("uas doctor exits with 1 and says what to do if a vendor refuses the credential", async () => {
    const { code, of } = await doctor({ DATABASE_URL: database.url, K: "wrong-credential" });
    expect(code).toBe(1);
    expect(of("vendors")).toMatchObject([
      { result: "problem", text: expect.stringMatching(/^v K: refused \(401\)/) },
    ]);
    expect(of("vendors")[0]?.remedy).toContain("renew the credential");
  });

  it("uas doctor reports a database that does not answer, and checks the rest", async () => {
    const url = "postgresql://postgres@127.0.0.1:9/none";
    const { code, of } = await doctor({ DATABASE_URL: url, K: "right-credential" });
    expect([code, of("database")[0]?.result]).toEqual([1, "problem"]);
    expect(of("vendors")[0]?.result).toBe("ok");
  });

  it("uas doctor reports a faulty configuration with its line", async () => {
    const { code, of } = await doctor({ DATABASE_URL: database.url });
    expect(code).toBe(1);
    expect(of("configuration")[0]).toMatchObject({ result: "problem" });
    expect(of("configuration")[0]?.text).toMatch(/^uas\.yaml:2:\d+ .*K/);
  });

  it("uas doctor reports processes with different configurations", async () => {
    const processes = ["aaa", "bbb"].map((hash, at) => ({ name: `host-${at}`, hash }));
    const transport = createRouterTransport(({ service }) => {
      service(OperatorService, { getSystemInfo: () => ({ version: "1.2.3" }) });
      service(ConfigService, {
        getConfig: () => create(GetConfigResponseSchema, { config: { hash: "aaa" }, processes }),
      });
    });
    const { findings } = await checkGateway(transport, "1.2.3");
    expect(findings).toContainEqual({
      check: "processes",
      result: "problem",
      text: "different configurations are in force: host-0 aaa, host-1 bbb",
      remedy: "`uas reload` in each of them",
    });
  });
});
