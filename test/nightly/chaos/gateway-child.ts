/** A whole gateway as a process with planned ends. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openGateway } from "../../../src/app/gateway.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { readSettings } from "../../../src/config/settings.ts";
import { servedKinds } from "../../../src/provider/index.ts";
import { often } from "../../behaviour/native/native-vendor.ts";
import { crashAt, endWithParent, readPlan, readyWord } from "./plan.ts";

const plan = readPlan();
endWithParent();
const { dataDir, url, vendor, timings, isFull } = plan;
const model =
  vendor?.kind === "fal"
    ? `{ type: IMAGE, routes: [{ vendor: sim, model: fal-ai/flux/schnell }], price: { image: "0.0001" } }`
    : `{ type: TEXT, routes: [{ vendor: sim, model: vendor-model }], max_output_tokens: 100, hold_output_tokens: 2, price: { input: "0.05", output: "0.60" } }`;
const yaml = `version: 1
vendors:
  sim: { kind: ${vendor?.kind}, base_url: "${vendor?.baseUrl}", api_key: "\${env:VENDOR_KEY}" }
models:
  m: ${model}
`;
const configPath = join(dataDir, "uas.yaml");
writeFileSync(configPath, yaml);
const env = {
  UAS_CONFIG: configPath,
  UAS_DATA_DIR: dataDir,
  UAS_LISTEN: "127.0.0.1:0",
  UAS_INTERNAL_LISTEN: "127.0.0.1:0",
  DATABASE_URL: url,
  VENDOR_KEY: vendor?.secret,
};
const failpoint = crashAt(plan);
const app = await openGateway({
  settings: readSettings(env, dataDir),
  config: loadConfig({ env, cwd: dataDir, kinds: servedKinds, unresolved: "refuse" }),
  journal: plan.journal,
  timings,
  // The work of a dead process continues soon; production waits ten times as long.
  taskTimings: isFull ? {} : { ...often, leaseMs: 2_500, heartbeatMs: 500 },
  ...(failpoint && { failpoint }),
});
const { publicUrl } = await app.listen();
process.once("SIGTERM", () => void app.close());
process.stdout.write(`${readyWord} ${publicUrl.replace(/\/$/, "")}\n`);
