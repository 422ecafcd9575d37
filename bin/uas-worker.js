// One worker of `uas serve` with UAS_WORKERS: its supervisor starts it, people do not.
import "./compile-cache.js";
const { runWorker } = await import("../src/server/worker.ts");
await runWorker();
