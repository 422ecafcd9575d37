/**
 * The ledger and its journal: answers while the database is unreachable, and bookings afterwards.
 */
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { createLedger, type LedgerWriter } from "../../../../src/billing/ledger/ledger-writer.ts";
import { JournalFiles } from "../../../../src/billing/journal/journal-files.ts";
import type { LedgerOptions } from "../../../../src/billing/ledger/ledger.ts";
import { ErrorCode } from "../../../../src/core/errors.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, holdWaitMs, openBilling } from "../harness.ts";
import { newId } from "../../../../src/core/uuid.ts";

describe("a ledger with a journal", () => {
  let billing: Billing;
  let proxy: FaultProxy;
  let folder: string;
  let ledgers: LedgerWriter[];
  beforeAll(async () => {
    billing = await openBilling();
    proxy = await startFaultProxy(billing.url);
  });
  beforeEach(() => {
    folder = fs.mkdtempSync(join(tmpdir(), "uas-ledger-journal-"));
    ledgers = [];
  });
  afterEach(async () => {
    proxy.refuse(false);
    for (const ledger of ledgers) await ledger.close();
    fs.rmSync(folder, { recursive: true, force: true });
    await billing.expectClean();
  });
  afterAll(async () => {
    await proxy.close();
    await billing.close();
  });

  function open(journal: LedgerOptions["journal"] = { folder }): LedgerWriter {
    const ledger = createLedger({ url: proxy.url, connections: 1, holdWaitMs, journal });
    ledgers.push(ledger);
    return ledger;
  }

  async function hold(ledger: LedgerWriter, accountId: string): Promise<string> {
    const id = newId();
    const verdict = await ledger.hold({ id, accountId, amountNanos: 20n, keyId: "" });
    expect(verdict).toEqual({ admitted: true });
    return id;
  }

  function settle(ledger: LedgerWriter, id: string, accountId: string): Promise<void> {
    const record = callRow(id, accountId, { cost: "13", held: "20" });
    return ledger.settle({ id, accountId, costNanos: 13n, record });
  }

  /** The files with settlements. */
  function journals(): string[] {
    return fs.readdirSync(folder).filter((name) => name.endsWith(".journal"));
  }

  function goAway(): void {
    proxy.refuse(true);
    proxy.cut();
  }

  test("R-MON-2: a settlement is durable while the database is unreachable, and is booked once when it is back", async () => {
    const account = await billing.account(100n);
    const ledger = open();
    const id = await hold(ledger, account);
    goAway();
    await settle(ledger, id, account);
    expect(ledger.stats()).toMatchObject({ pendingSettles: 1, journalEntries: 1 });
    proxy.refuse(false);
    await ledger.flush();
    expect(ledger.stats()).toMatchObject({ pendingSettles: 0, journalEntries: 0, openHolds: 0 });
    expect(await billing.balance(account)).toEqual({ available: 87n, held: 0n });
  });

  test("R-MON-2: a settlement is also durable while the database accepts connections but does not answer", async () => {
    const account = await billing.account(100n);
    const ledger = open();
    const id = await hold(ledger, account);
    proxy.hang();
    await settle(ledger, id, account);
    expect(ledger.stats()).toMatchObject({ pendingSettles: 1, journalEntries: 1 });
    proxy.cut();
    proxy.resume();
    await ledger.flush();
    expect(await billing.balance(account)).toEqual({ available: 87n, held: 0n });
  });

  test("R-MON-7: holds are refused while the journal is full", async () => {
    const account = await billing.account(100n);
    const ledger = open({ folder, entriesMax: 1 });
    const ids = [await hold(ledger, account), await hold(ledger, account)];
    goAway();
    const settled = ids.map((id) => settle(ledger, id, account));
    await Promise.race(settled);
    const refused = ledger.hold({
      id: newId(),
      accountId: account,
      amountNanos: 1n,
      keyId: "",
    });
    await expect(refused).rejects.toMatchObject({
      code: ErrorCode.SERVICE_UNAVAILABLE,
      retryAfterSeconds: 1,
    });
    proxy.refuse(false);
    await Promise.all(settled);
    await ledger.flush();
    await settle(ledger, await hold(ledger, account), account);
    expect(await billing.balance(account)).toEqual({ available: 61n, held: 0n });
  });

  test("R-MON-2: where the journal cannot be written, an alarm is logged and settlements wait for the database", async () => {
    const account = await billing.account(100n);
    const file = join(folder, "file");
    fs.writeFileSync(file, "");
    const alarm = vi.fn();
    const ledger = createLedger({
      url: proxy.url,
      connections: 1,
      holdWaitMs,
      journal: { folder: file },
      alarm,
    });
    ledgers.push(ledger);
    const id = await hold(ledger, account);
    goAway();
    const settled = settle(ledger, id, account);
    await vi.waitFor(() => expect(ledger.stats().journalFailures).toBe(1));
    expect(alarm).toHaveBeenCalledWith(
      expect.stringContaining("cannot be written"),
      expect.objectContaining({ file: expect.stringContaining(file) as string }),
    );
    proxy.refuse(false);
    await settled;
    await ledger.flush();
    expect(await billing.balance(account)).toEqual({ available: 87n, held: 0n });
  });

  test("R-MON-2: several processes with separate files book the settlements of an ended one, once", async () => {
    const account = await billing.account(100n);
    const files = new JournalFiles(folder);
    const names = files.assign();
    const [one, other] = [open({ folder, names }), open({ folder, names: files.assign() })];
    const ids = [await hold(one, account), await hold(other, account)] as const;
    goAway();
    await settle(one, ids[0], account);
    await settle(other, ids[1], account);
    await one.close();
    ledgers = [other];
    files.release(names);
    const third = open({ folder, names: files.assign() });
    await vi.waitFor(() => expect(third.stats().journalEntries).toBe(1));
    expect(other.stats().journalEntries).toBe(1);
    proxy.refuse(false);
    for (const ledger of ledgers) await ledger.flush();
    await vi.waitFor(() => expect(journals()).toEqual([]));
    expect(await billing.balance(account)).toEqual({ available: 74n, held: 0n });
    expect(await billing.count("call", `account_id = '${account}'`)).toBe(2);
  });

  test("R-MON-2: a replayed settlement is booked as late where its hold was recovered meanwhile", async () => {
    const account = await billing.account(100n);
    const ledger = open();
    const id = await hold(ledger, account);
    goAway();
    await settle(ledger, id, account);
    await ledger.close();
    ledgers = [];
    await billing.age([id], 1);
    await billing.pool.query("select ledger_recover_holds($1, $2)", [account, [id]]);
    expect(await billing.balance(account)).toEqual({ available: 100n, held: 0n });
    proxy.refuse(false);
    open();
    await vi.waitFor(() => expect(journals()).toEqual([]));
    expect(await billing.balance(account)).toEqual({ available: 87n, held: 0n });
  });
});
