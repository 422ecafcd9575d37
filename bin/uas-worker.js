// One worker of `uas serve` with UAS_WORKERS: its supervisor starts it, people do not.
import "./compile-cache.js";
const { runWorker } = await import("../src/app/worker.ts");
await runWorker();
