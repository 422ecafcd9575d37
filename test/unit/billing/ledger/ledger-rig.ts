/**
 * The real ledger for a property test: writers that crash, an account, and what can be seen of it.
 */
import type { Pool } from "pg";
import type { LedgerBatch } from "../../../../src/billing/ledger/apply-in.ts";
import { createLedger, type LedgerWriter } from "../../../../src/billing/ledger/ledger-writer.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";
import { callRow } from "../calls/call-row.ts";
import { holdWaitMs } from "../harness.ts";
import { type KeyName, keyLimit, type ModelAccount, type Op, vendorCost } from "./ledger-model.ts";
import { newId } from "../../../../src/core/uuid.ts";

/** Beats would take the place of the answer that a test means to lose. */
const heartbeatMs = 1 << 30;

/**
 * Two processes on one database; the first one's connection can be cut. Shared by many sequences.
 */
export class Stage {
  readonly pool: Pool;
  readonly proxy: FaultProxy;
  /** Replaced if the process dies. */
  ledger: LedgerWriter;
  readonly other: LedgerWriter;

  private constructor(pool: Pool, proxy: FaultProxy, url: string) {
    this.pool = pool;
    this.proxy = proxy;
    this.ledger = open(proxy.url);
    this.other = open(url);
  }

  static async open(pool: Pool, url: string): Promise<Stage> {
    return new Stage(pool, await startFaultProxy(url), url);
  }

  /** The process dies and another one starts. Returns the dead one's id. */
  async die(): Promise<string> {
    const { nodeId } = this.ledger;
    this.proxy.refuse(true);
    this.proxy.cut();
    await this.ledger.close(0);
    // The answer that was lost need not have been the one to its last words.
    await this.proxy.ended();
    this.proxy.refuse(false);
    this.ledger = open(this.proxy.url);
    return nodeId;
  }

  async close(): Promise<void> {
    await Promise.all([this.ledger.close(), this.other.close()]);
    await this.proxy.close();
  }
}

function open(url: string): LedgerWriter {
  return createLedger({ url, connections: 1, holdWaitMs, heartbeatMs });
}

/** One account of the real ledger. */
export class Rig {
  readonly accountId = newId();
  readonly stage: Stage;
  readonly keyIds = { none: "", limited: newId(), free: newId() };
  /** The ids by the small numbers that commands name them with. */
  readonly #ids = new Map<number, string>();

  constructor(stage: Stage) {
    this.stage = stage;
  }

  id(slot: number): string {
    const id = this.#ids.get(slot) ?? newId();
    this.#ids.set(slot, id);
    return id;
  }

  /** Orders calls by their ids. */
  readonly byId = (a: number, b: number): number => (this.id(a) < this.id(b) ? -1 : 1);

  /** Does it by the ledger, and says what came of it in the model's words. */
  async run(ledger: LedgerWriter, op: Op): Promise<string> {
    const { accountId } = this;
    const id = this.id(op.slot);
    if (op.kind === "settle") {
      await ledger.settle({
        id,
        accountId,
        costNanos: op.nanos,
        record: this.#row(op.slot, op.nanos),
      });
      return "settled";
    }
    const operation = { id, accountId, amountNanos: op.nanos };
    if (op.kind === "extend") {
      const { checkpoint } = op;
      const told = checkpoint !== undefined && {
        checkpointNanos: checkpoint,
        record: this.#row(op.slot, checkpoint),
      };
      const verdict = await ledger.extend({ ...operation, ...told });
      return verdict.closed ? "closed" : `held ${verdict.heldNanos}`;
    }
    const limit = op.key === "limited" && { keyLimitNanos: keyLimit };
    const verdict = await ledger.hold({ ...operation, keyId: this.keyIds[op.key], ...limit });
    if (verdict.admitted) return "admitted";
    if (verdict.closed) return "closed";
    const { availableNanos, keyRemainingNanos: remaining } = verdict;
    return `refused ${availableNanos}${remaining === undefined ? "" : `, key ${remaining}`}`;
  }

  /** Returns the batch of a transaction of another room. */
  batch(settles: readonly Op[], holds: readonly Op[]): LedgerBatch {
    const { accountId } = this;
    return {
      accountId,
      settles: settles.map(({ slot, nanos }) => {
        return { id: this.id(slot), costNanos: nanos, record: this.#row(slot, nanos) };
      }),
      holds: holds.map(({ slot, nanos }) => ({ id: this.id(slot), amountNanos: nanos })),
    };
  }

  /** All that can be seen of the account. */
  async see(): Promise<unknown> {
    const { rows } = await this.stage.pool.query<{ seen: unknown }>({
      // Prepared: to plan it for all partitions takes longer than all that a command does.
      name: "see",
      text: seeStatement,
      values: [this.accountId, [...this.#ids.values()]],
    });
    return rows[0]?.seen;
  }

  /** All that would be seen of the model's. */
  expected(model: ModelAccount): unknown {
    const holds: Record<string, unknown> = {};
    for (const slot of [...model.holds.keys()].toSorted(this.byId)) {
      const hold = model.holds.get(slot);
      if (!hold) continue;
      const { state, amount, cost, paid, vendor, steps } = hold;
      const isOpen = state === "open";
      const code = { open: 1, ended: cost > 0n ? 2 : 3, swept: 4 }[state];
      const record = isOpen ? null : `${cost}`;
      holds[this.id(slot)] = [
        code,
        `${amount}`,
        isOpen ? null : `${cost}`,
        `${paid}`,
        `${vendor}`,
        steps,
        record,
        isOpen && hold.checkpoint !== undefined ? `${hold.checkpoint}` : null,
      ];
    }
    const key = (name: KeyName): string[] => {
      const { spent, held } = model.keys[name];
      return [`${spent}`, `${held}`];
    };
    const used = (["limited", "free"] as const).filter((name) =>
      [...model.holds.values()].some((hold) => hold.key === name),
    );
    return {
      balance: [`${model.available}`, `${model.held}`],
      holds,
      keys: Object.fromEntries(used.map((name) => [this.keyIds[name], key(name)])),
    };
  }

  #row(slot: number, cost: bigint): ReturnType<typeof callRow> {
    return callRow(this.id(slot), this.accountId, {
      held: "1",
      vendor_cost: `${vendorCost(cost)}`,
    });
  }
}

/**
 * By hold: state, amount, settled, what the customer and the vendor got by all of its entries,
 * steps, the record's cost, the checkpoint.
 */
const seeStatement = `
select json_build_object(
  'balance', (select json_build_array(available::text, held::text) from balance where account_id = $1),
  'holds', coalesce((
    select json_object_agg(h.id, json_build_array(h.state, h.amount::text, h.settled::text,
        coalesce(-e.paid, 0)::text, coalesce(e.vendor, 0)::text,
        (select count(*) from hold_step s where s.hold_id = h.id),
        (select cost::text from call c where c.id = h.id),
        (select cost::text from hold_checkpoint p where p.hold_id = h.id)) order by h.id)
      from hold h cross join lateral (
        select sum(amount) filter (where account = 1) as paid,
            sum(amount) filter (where account = 8) as vendor
          from (select account, amount from ledger_entry where txn_id = h.id and account_id = h.account_id
            union all select account, amount from ledger_entry where call_id = h.id) booked) e
      where h.id = any($2::uuid[]) and h.account_id = $1), '{}'),
  'keys', coalesce((
    select json_object_agg(key_id, json_build_array(spent::text, held::text) order by key_id)
      from key_spend where account_id = $1), '{}')
) as seen`;
