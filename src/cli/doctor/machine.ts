/** Checks of this machine: disk, memory and Node.js. */
import { existsSync, statfsSync } from "node:fs";
import { totalmem } from "node:os";
import { dirname } from "node:path";
import type { Settings } from "../../config/config.ts";
import { type Finding, findings } from "./finding.ts";

const gib = 1024 ** 3;

/** Memory of one process under load, and the free disk space below which an outage is near. */
const processBytes = 0.4 * gib;
const freeBytesMin = gib;

/** Checks free space in the data folder. */
export function checkDisk({ dataDir }: Settings): Finding {
  const { ok, warning, problem } = findings("disk");
  const folder = existsSync(dataDir) ? dataDir : dirname(dataDir);
  if (!existsSync(folder)) {
    return problem(`${folder} does not exist`, "create it, or set UAS_DATA_DIR");
  }
  const { bavail, blocks, bsize } = statfsSync(folder);
  const free = `${((bavail * bsize) / gib).toFixed(1)} GiB are free in ${folder}`;
  const remedy = "free space: the journal of charges needs it if the database is down";
  if (bavail * bsize < freeBytesMin) return problem(free, remedy);
  return bavail < blocks / 10 ? warning(free, remedy) : ok(free);
}

/** Checks memory for the processes, also against a limit of the container. */
export function checkMemory({ workers }: Settings): Finding {
  const { ok, warning } = findings("memory");
  const limit = process.constrainedMemory();
  const bytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  const needed = processBytes * (workers + (workers > 1 ? 1 : 0));
  const text = `${(bytes / gib).toFixed(1)} GiB for ${workers} ${workers === 1 ? "process" : "workers"}`;
  if (bytes >= needed) return ok(text);
  return warning(text, `allow ${(needed / gib).toFixed(1)} GiB, or set fewer UAS_WORKERS`);
}

/** Checks the version of Node.js that the command runs on: `./uas` chooses the gateway's alike. */
export function checkNode(version: string): Finding {
  const { ok, warning } = findings("node");
  const isOld = Number.parseInt(version.replace(/^v/, ""), 10) < 24;
  const text = `Node.js ${version.replace(/^v/, "")}`;
  return isOld
    ? warning(text, "use Node.js 24 or later: `./uas` finds the packaged one")
    : ok(text);
}
