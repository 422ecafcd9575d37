/**
 * Starts the vendors, the load, the bare proxy, the gateway of this checkout and, with `--gateway`,
 * another one.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { nextMessage, startScript, stop } from "./child.ts";
import { type Cleanup, openDatabase } from "./database.ts";
import {
  audit,
  install,
  type Installation,
  operate,
  type Operator,
  ownFolder,
  serve,
} from "./gateway.ts";
import type { Contestant, Loads } from "./measure.ts";
import { startNginx } from "./native-tools.ts";
import { findPostmaster } from "./proc.ts";
import { publicModel, type VendorName, vendorModel } from "./scenario.ts";

/** A gateway that takes part. */
export interface GatewayContestant extends Contestant {
  readonly installation: Installation;
  readonly operator: Operator;
  readonly accountId: string;
}

/** Everything that takes part in the scenarios. */
export interface Contestants {
  readonly loads: Loads;
  /** The ports of the vendors. */
  readonly vendors: Readonly<Record<VendorName, number>>;
  readonly gateway: GatewayContestant;
  /** In the order of their turns. */
  readonly all: readonly Contestant[];
  /** @throws if the ledger of a gateway has a broken rule */
  audit(): Promise<void>;
}

/** Starts them, with their files in `folder`. */
export async function startContestants(
  folder: string,
  otherFolder: string | undefined,
  cleanup: Cleanup,
): Promise<Contestants> {
  const nginx = await startNginx(join(folder, "nginx"));
  cleanup.push(() => stop(nginx.child));
  const streams = startScript("stream-vendor.ts", [], "load");
  cleanup.push(() => stop(streams));
  const vendors = {
    json: nginx.json,
    large: nginx.large,
    streams: await nextMessage<number>(streams),
  };
  const load = startScript("load.ts", [], "load");
  cleanup.push(() => stop(load));
  const bare = await startBareProxy(vendors, cleanup);
  const start = (name: "gateway" | "other", root: string): Promise<GatewayContestant> =>
    startGateway({ name, root, vendors, folder: join(folder, name) }, cleanup);
  const gateway = await start("gateway", ownFolder);
  const gateways = [gateway];
  if (otherFolder !== undefined) gateways.push(await start("other", otherFolder));
  return {
    loads: { process: load, folder },
    vendors,
    gateway,
    all: [bare, ...gateways],
    async audit() {
      for (const { installation } of gateways) await audit(installation);
    },
  };
}

async function startBareProxy(
  vendors: Contestants["vendors"],
  cleanup: Cleanup,
): Promise<Contestant> {
  const { json, large, streams } = vendors;
  const proxy = startScript("bare-proxy.ts", [json, large, streams].map(String), "contestant");
  cleanup.push(() => stop(proxy));
  const ports = await nextMessage<[number, number, number]>(proxy);
  return {
    name: "bare proxy",
    pid: proxy.pid ?? 0,
    ports: { json: ports[0], large: ports[1], streams: ports[2] },
    key: "",
    postmaster: undefined,
    model: vendorModel,
  };
}

interface GatewayPlace {
  readonly name: "gateway" | "other";
  readonly root: string;
  /** It has a separate database, because its tables may differ. */
  readonly folder: string;
  readonly vendors: Contestants["vendors"];
}

async function startGateway(
  { name, root, folder, vendors }: GatewayPlace,
  cleanup: Cleanup,
): Promise<GatewayContestant> {
  mkdirSync(folder);
  const database = await openDatabase(folder, cleanup);
  const installation = await install({ root, folder, vendors, database });
  const child = await serve(installation, (started) => cleanup.push(() => stop(started)));
  const operator = operate(installation);
  const accountId = await operator.createAccount("bench");
  const { port } = installation;
  return {
    name,
    pid: child.pid ?? 0,
    ports: { json: port, large: port, streams: port },
    key: await operator.createKey(accountId),
    postmaster: await findPostmaster(database.url),
    model: publicModel,
    installation,
    operator,
    accountId,
  };
}
