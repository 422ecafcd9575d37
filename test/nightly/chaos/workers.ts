/**
 * A gateway with two workers, of which one is killed while it streams: with the timings of
 * production, the holds of its calls end within a minute (R-MON-7).
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "pg";
import { beginStream } from "../ha/load.ts";
import { operatorToken, Process, until } from "../../behaviour/lifecycle/process.ts";
import { createServices } from "../../behaviour/lifecycle/services.ts";
import { killWorker } from "../../behaviour/lifecycle/workers-rig.ts";
import { startPostgres } from "../../support/replicated.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { startUpstream } from "../../support/upstream/upstream.ts";
import { type Findings, noFindings, noteAudit } from "./check.ts";
import { DeadHolds } from "./dead-holds.ts";

/** Streams that are under way at the kill: the two workers get them in turn. */
const streams = 4;

/** Result of a round. */
export interface WorkersResult {
  /** From the death of the worker until its holds had ended. */
  readonly deadHoldsMs: number;
  readonly findings: Findings;
}

/** Runs a round on a separate database. */
export async function runWorkers(): Promise<WorkersResult> {
  const folder = mkdtempSync(join(tmpdir(), "uas-workers-"));
  const vendor = await startUpstream();
  vendor.always(answer({ cutAfter: 2, ending: "hang" }));
  const database = await startPostgres(folder);
  const pool = new Pool({ connectionString: database.url, max: 2 });
  pool.on("error", () => {});
  const place = join(folder, "gateway");
  mkdirSync(place);
  writeFileSync(join(place, "uas.yaml"), yamlOf(vendor.baseUrl));
  const gateway = new Process(
    { folder: place, close() {} },
    {
      DATABASE_URL: database.url,
      VENDOR_KEY: vendor.secret,
      UAS_OPERATOR_TOKEN: operatorToken,
      UAS_WORKERS: "2",
    },
  );
  try {
    return await killOne(gateway, database.url, pool);
  } finally {
    await gateway.kill();
    await pool.end();
    await database.kill();
    await vendor.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function killOne(gateway: Process, url: string, pool: Pool): Promise<WorkersResult> {
  const address = await gateway.listening();
  const { key } = await createServices(url).customer();
  const replies = Array.from({ length: streams }, () => beginStream(address.url, key, "Endless"));
  await until("both workers stream", async () => {
    const { rows } = await pool.query("select node_id from open_hold group by node_id");
    return rows.length === 2 ? true : undefined;
  });
  const dead = new DeadHolds((text, values) => pool.query<object>(text, [...values]));
  dead.add(killWorker(gateway, 1));
  const findings = noFindings();
  const deadHoldsMs = await dead.check(findings);
  await noteAudit(pool, findings);
  await gateway.kill();
  await Promise.all(replies);
  return { deadHoldsMs, findings };
}

function yamlOf(baseUrl: string): string {
  return `version: 1
vendors:
  sim: { kind: openai-compatible, base_url: "${baseUrl}", api_key: "\${env:VENDOR_KEY}" }
models:
  m: { type: TEXT, routes: [{ vendor: sim, model: vendor-model }], max_output_tokens: 100, price: { input: "0.25", output: "2.00" } }
`;
}
