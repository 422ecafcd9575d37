/** The place of one round: a database, a proxy before it, a data folder, accounts. */
import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "pg";
import { LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { reserveSuffix, segmentSuffix } from "../../../src/billing/journal/journal-segment.ts";
import { book } from "../../../src/billing/ledger/booking.ts";
import { journalReserveBytes } from "../../../src/core/limits.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { createDatabase, withDatabase } from "../../support/test-server.ts";
import { type ChaosServer, run } from "./server.ts";
import { fillDisk, isFull, mountSmallDisk, smallestDiskBytes, unmount } from "./small-disk.ts";
import { newId } from "../../../src/core/uuid.ts";

/** What the accounts begin with, in nano-USD: enough, some, next to nothing. */
const balancesNanos = [1_000_000_000n, 50_000n, 500n];

/** How often is looked, in milliseconds. */
const lookMs = 20;

/** The place of a round. */
export class Site {
  readonly database: string;
  /** Through {@link proxy}. */
  readonly url: string;
  /** Past it. */
  readonly directUrl: string;
  readonly dataDir: string;
  readonly pool: Pool;
  readonly proxy: FaultProxy;
  readonly accountIds: readonly string[];
  readonly #server: ChaosServer;
  #isSmall = false;

  private constructor(
    parts: Pick<Site, "database" | "directUrl" | "dataDir" | "pool" | "proxy" | "accountIds">,
    server: ChaosServer,
  ) {
    this.database = parts.database;
    this.directUrl = parts.directUrl;
    this.dataDir = parts.dataDir;
    this.pool = parts.pool;
    this.proxy = parts.proxy;
    this.accountIds = parts.accountIds;
    this.url = parts.proxy.url;
    this.#server = server;
  }

  /** Makes one below `folder`. Close it. */
  static async open(server: ChaosServer, folder: string): Promise<Site> {
    // It may still be recovering from the round before.
    await run(server.adminUrl, "select 1");
    const database = await createDatabase(server.adminUrl, server.template);
    const url = withDatabase(server.adminUrl, database);
    const dataDir = join(folder, database);
    mkdirSync(join(dataDir, "journal"), { recursive: true });
    const pool = new Pool({ connectionString: url, max: 2 });
    pool.on("error", () => {});
    const proxy = await startFaultProxy(url);
    const accountIds = balancesNanos.map(() => newId());
    for (const [index, accountId] of accountIds.entries()) {
      await book(pool, {
        kind: LedgerKind.TOP_UP,
        accountId,
        amountNanos: balancesNanos[index] ?? 0n,
        reference: "chaos",
        callId: undefined,
      });
    }
    return new Site({ database, directUrl: url, dataDir, pool, proxy, accountIds }, server);
  }

  /** Takes the database away from the processes. */
  takeAway(): void {
    this.proxy.refuse(true);
    this.proxy.cut();
  }

  /** Gives it back. */
  giveBack(): void {
    this.proxy.refuse(false);
  }

  /** The files of the journal that may have settlements. */
  journal(): readonly string[] {
    return this.#journal(segmentSuffix);
  }

  /** The reserves of journals that are not in use. */
  reserves(): readonly string[] {
    return this.#journal(reserveSuffix);
  }

  #journal(suffix: string): string[] {
    return readdirSync(join(this.dataDir, "journal")).filter((name) => name.endsWith(suffix));
  }

  /** How many holds are open; `undefined`: the database does not answer just now. */
  async openHolds(): Promise<number | undefined> {
    const text = "select count(*)::int as count from open_hold";
    return this.#ask<{ count: number }>(text).then((row) => row?.count);
  }

  /** Whether, within this time, a process is taken for dead and all its holds are ended for it: a moment is
   * enough, its own calls go on when it does. */
  async isLeft(limitMs: number): Promise<boolean> {
    const text = `select from node n where n.ended is not null
      and not exists (select from open_hold h where h.node_id = n.id) limit 1`;
    for (const end = performance.now() + limitMs; performance.now() < end; await sleep(lookMs)) {
      if ((await this.#ask(text)) !== undefined) return true;
    }
    return false;
  }

  /** Resolves once nothing is open and nothing is kept any more, to whether that came in time. */
  async isClean(limitMs: number): Promise<boolean> {
    for (const end = performance.now() + limitMs; ; await sleep(lookMs)) {
      if (this.journal().length === 0 && (await this.openHolds()) === 0) return true;
      if (performance.now() > end) return false;
    }
  }

  /**
   * Gives the journal a small disk. Empty it must be.
   *
   * @param reserves how many reserves of journals it has room for. 0: it has none for a reserve, and is full after a few
   * settlements
   */
  shrinkDisk(reserves: number): void {
    const bytes = reserves === 0 ? smallestDiskBytes : (reserves + 0.5) * journalReserveBytes;
    mountSmallDisk(join(this.dataDir, "journal"), bytes);
    this.#isSmall = true;
  }

  /** Fills the journal's disk. */
  fillDisk(): void {
    fillDisk(join(this.dataDir, "journal"));
  }

  /** Whether the journal's disk is full. */
  isDiskFull(): boolean {
    return isFull(join(this.dataDir, "journal"));
  }

  /** Whether a journal has settlements in its reserve. */
  isReserveInUse(): boolean {
    const folder = join(this.dataDir, "journal");
    return this.journal().some((name) => {
      const file = statSync(join(folder, name), { throwIfNoEntry: false });
      return file?.size === journalReserveBytes;
    });
  }

  async close(): Promise<void> {
    if (this.#isSmall) unmount(join(this.dataDir, "journal"));
    await this.pool.end();
    await this.proxy.close();
    await run(this.#server.adminUrl, `drop database ${this.database} with (force)`);
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  async #ask<R extends object>(text: string): Promise<R | undefined> {
    return this.pool.query<R>(text).then(
      ({ rows }) => rows[0],
      () => undefined,
    );
  }
}
