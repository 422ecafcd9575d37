/** The place of one round: a database, a proxy before it, a data folder, accounts. */
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "pg";
import { LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import {
  JournalFiles,
  journalFolder,
  journalSuffix,
} from "../../../src/billing/journal/journal-files.ts";
import { book } from "../../../src/billing/ledger/booking.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { createDatabase, withDatabase } from "../../support/test-server.ts";
import { type ChaosServer, run } from "./server.ts";
import { isFull, mountSmallDisk, smallestDiskBytes, unmount } from "./small-disk.ts";
import { newId } from "../../../src/core/uuid.ts";

/** Opening balances: enough, some, nearly nothing. */
const balancesNanos = [1_000_000_000n, 50_000n, 500n];

/** Interval between checks. */
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
  /** The journal files of its processes. */
  readonly journals: JournalFiles;
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
    this.journals = new JournalFiles(journalFolder(parts.dataDir));
    this.#server = server;
  }

  /** Makes one below `folder`. Close it. */
  static async open(server: ChaosServer, folder: string): Promise<Site> {
    // It may still be recovering from the round before.
    await run(server.adminUrl, "select 1");
    const database = await createDatabase(server.adminUrl, server.template);
    const url = withDatabase(server.adminUrl, database);
    const dataDir = join(folder, database);
    mkdirSync(journalFolder(dataDir), { recursive: true });
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

  /** The files of journals: each has settlements. */
  journal(): readonly string[] {
    const names = readdirSync(journalFolder(this.dataDir));
    return names.filter((name) => name.endsWith(journalSuffix));
  }

  /** Returns the number of open holds; undefined if the database does not answer. */
  async openHolds(): Promise<number | undefined> {
    const text = "select count(*)::int as count from open_hold";
    return this.#ask<{ count: number }>(text).then((row) => row?.count);
  }

  /**
   * Whether, within this time, a process is taken for dead and all its holds are ended for it: a
   * moment is enough, its own calls go on when it does.
   */
  async isLeft(limitMs: number): Promise<boolean> {
    const text = `select from node n where n.ended is not null
      and not exists (select from open_hold h where h.node_id = n.id) limit 1`;
    for (const end = performance.now() + limitMs; performance.now() < end; await sleep(lookMs)) {
      if ((await this.#ask(text)) !== undefined) return true;
    }
    return false;
  }

  /** Resolves once nothing is open and nothing is stored, to whether that happened in time. */
  async isClean(limitMs: number): Promise<boolean> {
    for (const end = performance.now() + limitMs; ; await sleep(lookMs)) {
      if (this.journal().length === 0 && (await this.openHolds()) === 0) return true;
      if (performance.now() > end) return false;
    }
  }

  /** Gives the journals a disk that is full after a few settlements. They must be empty. */
  shrinkDisk(): void {
    mountSmallDisk(journalFolder(this.dataDir), smallestDiskBytes);
    this.#isSmall = true;
  }

  /** Whether the journals' disk is full. */
  isDiskFull(): boolean {
    return isFull(journalFolder(this.dataDir));
  }

  async close(): Promise<void> {
    if (this.#isSmall) unmount(journalFolder(this.dataDir));
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
