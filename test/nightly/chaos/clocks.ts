/** A database whose clock can be set, by libfaketime. */
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findBinaries } from "../../../src/db/embedded/server-process.ts";
import { type PostgresServer, startPostgres } from "../../support/replicated.ts";
import { type ChaosServer, makeTemplate } from "./server.ts";

/** A database whose clock can step. */
export interface ClockedServer extends ChaosServer {
  /** Sets its clock so many milliseconds off, also for its running processes. */
  setClock(offsetMs: number): void;
  /** How far its clock is off, in milliseconds. */
  clockOffsetMs(): Promise<number>;
}

/** The library that changes what programs take for the time; `undefined`: this machine has none. */
export function findFaketime(): string | undefined {
  if (process.platform !== "linux") return undefined;
  return readdirSync("/usr/lib")
    .map((name) => join("/usr/lib", name, "faketime/libfaketime.so.1"))
    .find(existsSync);
}

/** Starts one below `folder`. @throws where there is no {@link findFaketime} */
export async function startClocked(folder: string): Promise<ClockedServer> {
  const { initdb, postgres } = findBinaries();
  const clock = join(folder, "clock");
  mkdirSync(clock, { recursive: true });
  chmodSync(clock, 0o755);
  const timeFile = join(clock, "time");
  const setClock = (offsetMs: number): void => {
    const seconds = Math.round(offsetMs / 1_000);
    writeFileSync(`${timeFile}.new`, `${seconds < 0 ? "" : "+"}${seconds}`);
    renameSync(`${timeFile}.new`, timeFile);
  };
  setClock(0);
  const program = join(clock, "postgres");
  const variables = [
    `LD_PRELOAD='${findFaketime()}'`,
    `FAKETIME_TIMESTAMP_FILE='${timeFile}'`,
    ...["FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DISABLE_SHM=1"],
  ];
  writeFileSync(program, `#!/bin/sh\n${variables.join(" ")} exec '${postgres}' "$@"\n`);
  chmodSync(program, 0o755);
  const server: PostgresServer = await startPostgres(folder, {
    programs: { initdb, postgres: program },
  });
  return {
    adminUrl: server.url,
    template: await makeTemplate(server.url),
    setClock,
    async clockOffsetMs() {
      const [row] = await server.query("select clock_timestamp() as now");
      return Number((row as { now: Date }).now) - Date.now();
    },
    close: () => server.kill(),
  };
}
