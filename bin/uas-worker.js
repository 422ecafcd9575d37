// One worker of `uas serve` with UAS_WORKERS: its supervisor starts it, people do not.
import "./compile-cache.js";
import { load } from "./program.js";

const { runWorker } = await load("app/worker");
await runWorker();
