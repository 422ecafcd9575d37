/** Revisions of the configuration: applied, followed by all processes, rolled back (R-OPS-1). */
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ConfigService } from "../../../gen/uas/config/v1/config_service_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { openServed, type Served, type ServedProcess, stream } from "../lifecycle/served.ts";
import { operatorToken, until } from "../lifecycle/process.ts";

let served: Served;
let gateways: readonly ServedProcess[];
let key: string;
beforeAll(async () => {
  served = await openServed();
  gateways = await Promise.all([served.start(), served.start({ UAS_WORKERS: "2" })]);
  ({ key } = await served.customer());
});
afterAll(() => served?.close());

function clientOf(gateway: ServedProcess | undefined) {
  const transport = createConnectTransport({
    baseUrl: gateway?.internalUrl ?? "",
    httpVersion: "1.1",
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${operatorToken}`);
        return next(request);
      },
    ],
  });
  return {
    config: createClient(ConfigService, transport),
    operator: createClient(OperatorService, transport),
  };
}

/** The hashes of all three processes. */
async function hashes(): Promise<string[]> {
  const { processes } = await clientOf(gateways[0]).config.getConfig({});
  return processes.map(({ hash }) => hash);
}

async function document(): Promise<string> {
  const { config } = await clientOf(gateways[0]).config.getConfig({});
  return config?.document ?? "";
}

it("an applied document is in force in all processes, with its differences and audit entry", async () => {
  const { config, operator } = clientOf(gateways[0]);
  const before = await document();
  const after = before.replace('output: "2.00"', 'output: "3.00"').replace("  m:", "  renamed:");
  const checked = await config.checkConfig({ document: after });
  expect(checked.problems).toEqual([]);
  expect(checked.differences.map(({ path }) => path)).toEqual(["models.renamed", "models.m"]);
  const { revision } = await config.applyConfig({ document: after, etag: "0", note: "rename" });
  expect(revision).toMatchObject({ revision: 1n, current: true, note: "rename" });
  await until("all have it", async () =>
    (await hashes()).every((hash) => hash === revision?.hash) ? true : undefined,
  );
  expect(await hashes()).toHaveLength(3);
  for (const gateway of gateways) expect((await stream(gateway.url, key)).status).toBe(404);
  const { entries } = await operator.listAuditEntries({ action: "config" });
  expect(entries[0]).toMatchObject({ action: "config.apply", subject: "1", reason: "rename" });
  const { processes } = await operator.getSystemInfo({});
  expect(processes.map(({ configSource }) => configSource)).toEqual(Array(3).fill("revision 1"));
});

it("a file that a revision replaces does not count as edited and not loaded", async () => {
  const { config } = clientOf(gateways[0]);
  expect((await config.getConfig({})).config).toMatchObject({ revision: 1n, fileDiffers: true });
  const metrics = await fetch(`${gateways[0]?.internalUrl}/metrics`);
  expect(await metrics.text()).toMatch(/^uas_config_file_differs 0$/m);
});

it("a faulty document is refused with line and path, and changes nothing", async () => {
  const { config } = clientOf(gateways[0]);
  const faulty = (await document()).replace("type: TEXT", "type: TXT");
  const { problems } = await config.checkConfig({ document: faulty });
  expect(problems).toEqual([expect.stringMatching(/^5:\d+ models\.renamed\.type: /)]);
  await expect(config.applyConfig({ document: faulty })).rejects.toThrow(/models\.renamed\.type/);
  const { revisions } = await config.listRevisions({});
  expect(revisions.map(({ revision }) => revision)).toEqual([1n]);
});

it("a price below the cost of a route is a warning before it is applied", async () => {
  const { config } = clientOf(gateways[0]);
  const cost = 'model: vendor-model, cost: { input: "0.01", output: "9" } }';
  const losing = (await document()).replace("model: vendor-model }", cost);
  const { problems, warnings } = await config.checkConfig({ document: losing });
  expect(problems).toEqual([]);
  expect(warnings).toEqual([
    expect.stringMatching(/^5 models\.renamed: the price of output, 3, is below the cost/),
  ]);
});

it("of two concurrent edits the second is refused, and says by whom", async () => {
  const { config } = clientOf(gateways[0]);
  const text = await document();
  const edit = (price: string) =>
    config.applyConfig({ document: text.replace("0.25", price), etag: "1" });
  const results = await Promise.allSettled([edit("0.26"), edit("0.27")]);
  const refused = results.find(({ status }) => status === "rejected");
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect(String((refused as PromiseRejectedResult).reason)).toMatch(
    /\[aborted\] the configuration was changed meanwhile by .*: revision 2; read it again/,
  );
});

it("a secret is in force in all processes as soon as it is set, and is never shown", async () => {
  const { config } = clientOf(gateways[1]);
  const text = (await document()).replace("${env:VENDOR_KEY}", "${secret:vendor}");
  await expect(config.applyConfig({ document: text })).rejects.toThrow(
    /no secret vendor is stored: set it by `uas config secret set vendor`/,
  );
  await config.setSecret({ name: "vendor", value: served.upstream.secret });
  await config.applyConfig({ document: text.replace("  renamed:", "  m:") });
  const { hash } = (await config.getConfig({})).config ?? {};
  await until("all have it", async () =>
    (await hashes()).every((each) => each === hash) ? true : undefined,
  );
  for (const gateway of gateways) expect((await stream(gateway.url, key)).status).toBe(200);
  const { secrets } = await config.listSecrets({});
  expect(secrets).toMatchObject([{ name: "vendor", used: true }]);
  await expect(config.deleteSecret({ name: "vendor" })).rejects.toThrow(
    /refers to \$\{secret:vendor\}/,
  );
  const { rows } = await served.pool.query<{ sealed: Buffer }>("select sealed from config_secret");
  expect(rows[0]?.sealed.includes(served.upstream.secret)).toBe(false);
  for (const gateway of gateways) expect(gateway.out).not.toContain(served.upstream.secret);
});

it("a gateway that starts takes the newest revision, whatever its file says", async () => {
  served.configure((yaml) => `${yaml}no_such_key: 1\n`);
  const late = await served.start();
  served.configure((yaml) => yaml.replace("no_such_key: 1\n", ""));
  expect(await late.logged("listening")).toMatchObject({ config: "revision 3" });
  expect((await stream(late.url, key)).status).toBe(200);
  expect((await late.stop()).code).toBe(0);
});

it("a rollback is a new revision with the earlier document, and 0 returns to the file of each gateway", async () => {
  const { config } = clientOf(gateways[0]);
  const { revision } = await config.rollBackConfig({ revision: 1n });
  expect(revision).toMatchObject({ revision: 4n, note: "back to revision 1" });
  const { document: first } = await config.getRevision({ revision: 1n });
  expect(await document()).toBe(first);
  await expect(config.rollBackConfig({ revision: 9n })).rejects.toThrow(/there is no revision 9/);
  await config.rollBackConfig({ revision: 0n, note: "file" });
  const { config: now } = await config.getConfig({});
  expect(now).toMatchObject({ source: "uas.yaml", revision: 0n, fileDiffers: false });
  await until("all have it", async () =>
    (await hashes()).every((hash) => hash === now?.hash) ? true : undefined,
  );
  for (const gateway of gateways) expect((await stream(gateway.url, key)).status).toBe(200);
});
