/** The ledger as a few maps, and the commands that a property test drives both with. */
import { deepEqual, equal } from "node:assert/strict";
import { randomUUIDv7 } from "node:crypto";
import * as fc from "fast-check";
import type { Pool } from "pg";
import { LedgerKind } from "../../gen/uas/billing/v1/billing_pb.ts";
import { applyIn } from "../../src/billing/apply-in.ts";
import { auditLedger } from "../../src/billing/audit.ts";
import { type Booking, book } from "../../src/billing/booking.ts";
import { type BillingJobs, createBillingJobs } from "../../src/billing/jobs.ts";
import { holdWaitMs } from "./harness.ts";
import { createLedger, type LedgerWriter } from "../../src/billing/ledger-writer.ts";
import { GatewayError } from "../../src/errors.ts";
import type { FaultProxy } from "../support/fault-proxy.ts";
import { callRow } from "./call-row.ts";

/** What a hold is in the model. */
interface ModelHold {
  readonly amount: bigint;
  state: "open" | "ended" | "expired";
  /** What the customer paid, once it is ended. */
  paid: bigint;
  refunded: bigint;
}

/** One account of the model. */
class ModelAccount {
  available = 0n;
  held = 0n;
  loss = 0n;
  readonly holds = new Map<string, ModelHold>();
  readonly bookings = new Map<string, string>();

  hold(id: string, amount: bigint): { admitted: boolean; availableNanos?: bigint } {
    const old = this.holds.get(id);
    if (old)
      return old.state === "open" ? { admitted: true } : { admitted: false, availableNanos: 0n };
    if (amount > this.available) return { admitted: false, availableNanos: this.available };
    this.available -= amount;
    this.held += amount;
    this.holds.set(id, { amount, state: "open", paid: 0n, refunded: 0n });
    return { admitted: true };
  }

  /** Settles as one batch: each call pays from its own hold first, the rest comes from the pool by id. */
  settle(costs: ReadonlyMap<string, bigint>): void {
    const excess: [ModelHold, bigint][] = [];
    for (const [id, cost] of [...costs].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      const hold = this.holds.get(id);
      if (!hold) this.holds.set(id, { amount: 0n, state: "ended", paid: 0n, refunded: 0n });
      if (!hold || hold.state === "ended") continue;
      const own = hold.state === "open" ? hold.amount : 0n;
      hold.paid = cost < own ? cost : own;
      hold.state = "ended";
      this.held -= own;
      this.available += own - hold.paid;
      excess.push([hold, cost - hold.paid]);
    }
    for (const [hold, missing] of excess) {
      const paid = missing < this.available ? missing : this.available;
      hold.paid += paid;
      this.available -= paid;
      this.loss += missing - paid;
    }
  }

  expire(id: string): void {
    const hold = this.holds.get(id);
    if (hold?.state !== "open") return;
    this.held -= hold.amount;
    this.available += hold.amount;
    hold.state = "expired";
  }

  /** Returns whether it was booked or replayed; `undefined`: refused. */
  book(reference: string, amount: bigint, callId?: string): "booked" | "replayed" | undefined {
    const content = `${amount} ${callId ?? ""}`;
    const old = this.bookings.get(reference);
    if (old !== undefined) return old === content ? "replayed" : undefined;
    const hold = callId === undefined ? undefined : this.holds.get(callId);
    if (callId !== undefined) {
      if (!hold || hold.paid === 0n || hold.paid - hold.refunded < amount) return undefined;
      hold.refunded += amount;
    }
    this.bookings.set(reference, content);
    this.available += amount;
    return "booked";
  }
}

/** The real ledger, shared by all sequences: connections cost more than their commands. */
interface Stage {
  readonly pool: Pool;
  readonly proxy: FaultProxy;
  readonly jobs: BillingJobs;
  /** Replaced where a writer crashes. */
  ledger: LedgerWriter;
}

/** One account of the real ledger. */
class Rig {
  readonly accountId = randomUUIDv7();
  readonly stage: Stage;
  /** The ids by the small numbers that commands name them with. */
  readonly #ids = new Map<number, string>();

  constructor(stage: Stage) {
    this.stage = stage;
  }

  id(slot: number): string {
    const id = this.#ids.get(slot) ?? randomUUIDv7();
    this.#ids.set(slot, id);
    return id;
  }
}

/** A command: what it does to the model and to the real thing, and that both agree. */
type Command = fc.AsyncCommand<ModelAccount, Rig>;

/** A command from a text and a function. */
function command(text: string, run: (model: ModelAccount, rig: Rig) => Promise<void>): Command {
  return {
    check: () => true,
    toString: () => text,
    async run(model, rig) {
      await run(model, rig);
      const { rows } = await rig.stage.pool.query<{ available: string; held: string }>(
        "select available, held from balance where account_id = $1",
        [rig.accountId],
      );
      const { available = "0", held = "0" } = rows[0] ?? {};
      deepEqual([BigInt(available), BigInt(held)], [model.available, model.held]);
    },
  };
}

const hold = (slot: number, amountNanos: bigint, isCut: boolean): Command =>
  command(`hold(${slot}, ${amountNanos}${isCut ? ", answer lost" : ""})`, async (model, rig) => {
    const id = rig.id(slot);
    if (isCut) rig.stage.proxy.cutAtNextAnswer();
    const { accountId } = rig;
    const verdict = await rig.stage.ledger.hold({ id, accountId, amountNanos });
    const expected = model.hold(id, amountNanos);
    const availableNanos = verdict.admitted ? undefined : verdict.availableNanos;
    deepEqual([verdict.admitted, availableNanos], [expected.admitted, expected.availableNanos]);
  });

const settle = (slot: number, costNanos: bigint, isCut: boolean): Command =>
  command(`settle(${slot}, ${costNanos}${isCut ? ", answer lost" : ""})`, async (model, rig) => {
    const id = rig.id(slot);
    const held = model.holds.get(id)?.amount ?? 0n;
    if (isCut) rig.stage.proxy.cutAtNextAnswer();
    const { accountId } = rig;
    const record = callRow(id, accountId, { held: `${held}` });
    await rig.stage.ledger.settle({ id, accountId, costNanos, record });
    model.settle(new Map([[id, costNanos]]));
  });

type Slots = readonly (readonly [slot: number, nanos: bigint])[];

const batch = (settles: Slots, holds: Slots): Command =>
  command(`batch(settle ${settles.join(" ")}; hold ${holds.join(" ")})`, async (model, rig) => {
    const { accountId, stage } = rig;
    // The first of equal ids counts, in the model's maps too.
    const costs = new Map(settles.toReversed().map(([slot, nanos]) => [rig.id(slot), nanos]));
    const verdicts = await applyIn(stage.pool, {
      accountId,
      settles: [...costs].map(([id, costNanos]) => {
        const held = `${model.holds.get(id)?.amount ?? 0n}`;
        return { id, costNanos, record: callRow(id, accountId, { held }) };
      }),
      holds: holds.map(([slot, amountNanos]) => ({ id: rig.id(slot), amountNanos })),
    });
    model.settle(costs);
    const expected = holds.map(([slot, nanos]) => model.hold(rig.id(slot), nanos).admitted);
    deepEqual(
      verdicts.holds.map((verdict) => verdict.admitted),
      expected,
    );
  });

const expireAndSweep = (slots: readonly number[]): Command =>
  command(`expire and sweep(${slots.join(", ")})`, async (model, rig) => {
    const ids = slots.map((slot) => rig.id(slot));
    await rig.stage.pool.query(
      "update hold set expires_at = now() - interval '1 s' where id = any($1) and state = 1",
      [ids],
    );
    await rig.stage.jobs.sweep();
    for (const id of ids) model.expire(id);
  });

const bookOne = (text: string, reference: string, amountNanos: bigint, slot?: number): Command =>
  command(`${text}(${reference}, ${amountNanos}, ${slot ?? ""})`, async (model, rig) => {
    const callId = slot === undefined ? undefined : rig.id(slot);
    const kind = callId === undefined ? LedgerKind.TOP_UP : LedgerKind.REFUND;
    const booking: Booking = { kind, accountId: rig.accountId, amountNanos, reference, callId };
    const came = await book(rig.stage.pool, booking).catch((error: unknown) => {
      if (error instanceof GatewayError) return undefined;
      throw error;
    });
    const expected = model.book(reference, amountNanos, callId);
    equal(came && (came.replayed ? "replayed" : "booked"), expected);
  });

const crash = (): Command =>
  command("crash of the writer", async (_model, rig) => {
    const { stage } = rig;
    stage.proxy.cut();
    await stage.ledger.close(0);
    stage.ledger = createLedger({ url: stage.proxy.url, connections: 1, holdWaitMs });
  });

const slot = fc.integer({ min: 0, max: 5 });
const nanos = (max: number) => fc.integer({ min: 0, max }).map(BigInt);
const someSlots = fc.array(fc.tuple(slot, nanos(60)), { maxLength: 4 });
const isRare = fc.integer({ min: 0, max: 9 }).map((n) => n === 0);
const reference = fc.constantFrom("a", "b", "c", "d");

/** All that can happen to one account, in every order. */
const ledgerCommands = fc.commands(
  [
    fc.tuple(slot, nanos(60), isRare).map((args) => hold(...args)),
    fc.tuple(slot, nanos(60), isRare).map((args) => hold(...args)),
    fc.tuple(slot, nanos(90), isRare).map((args) => settle(...args)),
    fc.tuple(slot, nanos(90), isRare).map((args) => settle(...args)),
    fc.tuple(someSlots, someSlots).map((args) => batch(...args)),
    fc.array(slot, { minLength: 1, maxLength: 3 }).map(expireAndSweep),
    fc.tuple(reference, nanos(99)).map(([ref, n]) => bookOne("top up", ref, n + 1n)),
    fc.tuple(reference, nanos(30), slot).map(([ref, n, s]) => bookOne("refund", ref, n + 1n, s)),
    isRare.map((rare) => (rare ? crash() : expireAndSweep([0]))),
  ],
  { maxCommands: 20 },
);

/** Runs `numRuns` sequences of commands, each on a fresh account, and audits the books after each. */
export async function checkLedger(pool: Pool, proxy: FaultProxy, numRuns: number): Promise<void> {
  const ledger = createLedger({ url: proxy.url, connections: 1, holdWaitMs });
  const stage: Stage = { pool, proxy, jobs: createBillingJobs({ pool }), ledger };
  const property = fc.asyncProperty(ledgerCommands, (commands) => runSequence(stage, commands));
  try {
    await fc.assert(property, { numRuns });
  } finally {
    await stage.ledger.close();
  }
}

async function runSequence(stage: Stage, commands: Iterable<Command>): Promise<void> {
  const rig = new Rig(stage);
  const model = new ModelAccount();
  model.book("start", 100n);
  await book(stage.pool, startBooking(rig.accountId));
  await fc.asyncModelRun(() => ({ model, real: rig }), commands);
  await stage.ledger.flush();
  deepEqual(await auditLedger(stage.pool), []);
  const { rows } = await stage.pool.query<{ loss: string }>(
    "select coalesce(sum(amount), 0) as loss from ledger_entry where account = 6 and account_id = $1",
    [rig.accountId],
  );
  equal(-BigInt(rows[0]?.loss ?? 0), model.loss);
}

function startBooking(accountId: string): Booking {
  const kind = LedgerKind.TOP_UP;
  return { kind, accountId, amountNanos: 100n, reference: "start", callId: undefined };
}
