/** Starts who takes part: vendor, load, bare proxy, the gateway of this checkout and, where asked for, another one. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { ProcessFigures } from "./answer.ts";
import { type Child, start } from "./child.ts";
import { type BenchDatabase, openEmptyDatabase } from "./database.ts";
import { audit, createKey, type Installation, install, ownFolder, serve } from "./gateway.ts";
import { type Contestant, warmUp } from "./measure.ts";
import type { BenchOptions } from "./options.ts";
import { findPostmaster } from "./proc.ts";
import { publicModel, vendorModel } from "./scenario.ts";

/** What must be undone at the end, newest first. */
export type Cleanup = Array<() => Promise<void> | void>;

/** Where the bench works. */
export interface Place {
  readonly folder: string;
  /** Of the gateway of this checkout. */
  readonly database: BenchDatabase;
  readonly cleanup: Cleanup;
}

/** A gateway that takes part. */
export interface GatewayContestant extends Contestant {
  readonly installation: Installation;
  /** Resident memory before any load, in bytes. */
  readonly idleRssBytes: number;
}

/** Everybody that takes part in the scenarios. */
export interface Contestants {
  readonly load: Child;
  readonly bare: Contestant;
  readonly gateway: GatewayContestant;
  readonly other: GatewayContestant | undefined;
  /** In the order of their turns. */
  readonly all: readonly Contestant[];
  /** @throws where the books of a gateway are not in order. */
  audit(): Promise<void>;
}

/** Starts them, and warms them up where `isWarm`. */
export async function startContestants(
  options: BenchOptions,
  place: Place,
  isWarm: boolean,
): Promise<Contestants> {
  const { cleanup, database } = place;
  const upstream = keep(start({ command: ["upstream.ts"], core: "load" }), cleanup);
  const upstreamPort = await upstream.ask<number>("listen", options.groupChunks);
  const load = keep(start({ command: ["load.ts"], core: "load" }), cleanup);
  const proxy = keep(start({ command: ["bare-proxy.ts"], core: "contestant" }), cleanup);
  const bare: Contestant = {
    name: "bare proxy",
    process: proxy,
    port: await proxy.ask<number>("listen", upstreamPort),
    key: "",
    postmaster: undefined,
    model: vendorModel,
  };
  const places: GatewayPlace[] = [
    { name: "gateway", root: ownFolder, folder: place.folder, database },
    ...(await otherPlace(options, place)),
  ];
  const gateways = await Promise.all(
    places.map((each) => startGateway(each, upstreamPort, cleanup)),
  );
  const [gateway, other] = gateways;
  if (gateway === undefined) throw new Error("no gateway takes part");
  const all = [bare, ...gateways];
  if (isWarm) for (const contestant of all) await warmUp(load, contestant, options.warmUp);
  return {
    load,
    bare,
    gateway,
    other,
    all,
    async audit() {
      await Promise.all(gateways.map(({ installation }) => audit(installation)));
    },
  };
}

/** A data folder and a database of its own: its tables may differ. */
async function otherPlace(
  { otherFolder }: BenchOptions,
  { folder: parent, cleanup }: Place,
): Promise<GatewayPlace[]> {
  if (otherFolder === undefined) return [];
  const folder = join(parent, "other");
  mkdirSync(folder);
  const database = await openEmptyDatabase(folder);
  cleanup.push(() => database.close());
  return [{ name: "other", root: otherFolder, folder, database }];
}

interface GatewayPlace {
  readonly name: "gateway" | "other";
  readonly root: string;
  readonly folder: string;
  readonly database: BenchDatabase;
}

async function startGateway(
  { name, root, folder, database }: GatewayPlace,
  upstreamPort: number,
  cleanup: Cleanup,
): Promise<GatewayContestant> {
  const installation = await install({ root, folder, upstreamPort, database });
  const child = keep(await serve(installation), cleanup);
  const { rssBytes } = await child.ask<ProcessFigures>("figures");
  return {
    name,
    process: child,
    port: installation.port,
    key: await createKey(installation),
    postmaster: await findPostmaster(database.url),
    model: publicModel,
    installation,
    idleRssBytes: rssBytes,
  };
}

/** Has a process stopped at the end of the bench. */
export function keep(child: Child, cleanup: Cleanup): Child {
  cleanup.push(() => child.stop());
  return child;
}

/** Undoes what must be undone, newest first. */
export async function undo(cleanup: Cleanup): Promise<void> {
  for (const step of cleanup.toReversed()) await step();
}

/** Undoes what `work` leaves as soon as it has ended; with `outer`, where the bench is interrupted meanwhile. */
export async function withCleanup<T>(
  outer: Cleanup,
  work: (cleanup: Cleanup) => Promise<T>,
): Promise<T> {
  const own: Cleanup = [];
  let undone: Promise<void> | undefined;
  const undoOwn = (): Promise<void> => (undone ??= undo(own));
  outer.push(undoOwn);
  try {
    return await work(own);
  } finally {
    await undoOwn();
  }
}
