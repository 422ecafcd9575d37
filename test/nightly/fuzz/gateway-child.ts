/**
 * A whole gateway as a separate process, which reports its memory, handles and event loop on
 * request.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { pino } from "pino";
import { openGateway } from "../../../src/app/gateway.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { readSettings } from "../../../src/config/settings.ts";
import { setV8Flags } from "../../../src/app/v8-flags.ts";
import { servedKinds } from "../../../src/provider/index.ts";
import { killSelf } from "../../support/child.ts";
import type { GatewayPlan, Measurement, ToChild } from "./gateway-process.ts";

const plan = JSON.parse(process.env["UAS_FUZZ_PLAN"] ?? "") as GatewayPlan;
const { dataDir, databaseUrl, yaml, env: secrets } = plan;
// Nothing stays behind, whatever ends the parent.
process.once("disconnect", killSelf);

setV8Flags();
const configPath = join(dataDir, "uas.yaml");
writeFileSync(configPath, yaml);
const env = {
  UAS_CONFIG: configPath,
  UAS_DATA_DIR: dataDir,
  UAS_LISTEN: "127.0.0.1:0",
  UAS_INTERNAL_LISTEN: "127.0.0.1:0",
  DATABASE_URL: databaseUrl,
  ...secrets,
};
const app = await openGateway({
  settings: readSettings(env, dataDir),
  config: loadConfig({ env, cwd: dataDir, kinds: servedKinds, unresolved: "refuse" }),
  log: pino({ level: "warn" }),
  taskTimings: { scanMs: 100, pollMs: 50, pollMsMax: 50, refreshMs: 25 },
});
const { publicUrl, internalUrl } = await app.listen();

/** Interval of measuring the event loop's delay, in milliseconds; the results include it. */
const resolution = 10;

const delay = monitorEventLoopDelay({ resolution });
delay.enable();

function measure(): Measurement {
  // Twice: what finalizers release is free after the second one only.
  globalThis.gc?.();
  globalThis.gc?.();
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
  const handles: Record<string, number> = {};
  for (const type of process.getActiveResourcesInfo()) handles[type] = (handles[type] ?? 0) + 1;
  const listeners = process
    .eventNames()
    .reduce((sum, name) => sum + process.listenerCount(name), 0);
  const delayP99Ms = Math.max(0, delay.percentile(99) / 1e6 - resolution);
  delay.reset();
  return { rss, heapUsed, heapTotal, external, handles, listeners, delayP99Ms };
}

const warnings: string[] = [];
process.on("warning", ({ name, message }) => warnings.push(`${name}: ${message}`));

process.on("message", (message: ToChild) => {
  if (message.kind === "measure") {
    process.send?.({ kind: "measured", measurement: measure(), warnings: warnings.splice(0) });
  } else if (message.kind === "flags") {
    for (const flag of message.flags) setFlagsFromString(flag);
  } else {
    void app.close().then(() => process.exit(0));
  }
});
process.send?.({ kind: "ready", url: publicUrl.replace(/\/$/, ""), internalUrl });
