/** All that can happen to an account of the ledger, in every order, beside the model of it. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import * as fc from "fast-check";
import type { Pool } from "pg";
import { LedgerKind } from "../../../../gen/uas/billing/v1/billing_pb.ts";
import { applyIn } from "../../../../src/billing/ledger/apply-in.ts";
import { auditLedger } from "../../../../src/billing/audit/audit.ts";
import { type Booking, book } from "../../../../src/billing/ledger/booking.ts";
import { GatewayError } from "../../../../src/core/errors.ts";
import { type KeyName, ModelAccount, type Op } from "./ledger-model.ts";
import { Rig, Stage } from "./ledger-rig.ts";

/**
 * A command: what it does to the model and to the real thing, and that both look the same after it.
 */
type Command = fc.AsyncCommand<ModelAccount, Rig>;

/** A command from a text and a function. */
function command(text: string, run: (model: ModelAccount, rig: Rig) => Promise<void>): Command {
  return {
    check: () => true,
    toString: () => text,
    async run(model, rig) {
      await run(model, rig);
      deepEqual(await rig.see(), rig.expected(model));
    },
  };
}

/** At once: they wait in the same queue, so they are one batch. */
const together = (ops: readonly Op[], isCut: boolean): Command =>
  command(`${texts(ops)}${isCut ? " (answer lost)" : ""}`, async (model, rig) => {
    const { ledger, proxy } = rig.stage;
    if (isCut) proxy.cutAtNextAnswer();
    const told = await Promise.all(ops.map((op) => rig.run(ledger, op)));
    const once = model.apply(ops, ledger.nodeId, rig.byId);
    // A refused operation is refused again, with the amount that is available after the others.
    const again = isCut ? model.apply(ops, ledger.nodeId, rig.byId) : once;
    deepEqual(told, isDeepStrictEqual(told, once) ? once : again);
  });

/** Two concurrent processes: either may come first. */
const race = (first: Op, second: Op): Command =>
  command(`race: ${texts([first])} | ${texts([second])}`, async (model, rig) => {
    const { ledger, other } = rig.stage;
    const told = await Promise.all([rig.run(ledger, first), rig.run(other, second)]);
    const seen = await rig.see();
    const turns = [
      { op: first, node: ledger.nodeId, told: told[0] },
      { op: second, node: other.nodeId, told: told[1] },
    ];
    const fits = (order: typeof turns): boolean => {
      const copy = model.clone();
      const answers = order.map(({ op, node }) => copy.apply([op], node, rig.byId)[0]);
      const isSo =
        answers.every((answer, index) => answer === order[index]?.told) &&
        isDeepStrictEqual(seen, rig.expected(copy));
      if (isSo) Object.assign(model, copy);
      return isSo;
    };
    ok(fits(turns) || fits(turns.toReversed()), `neither order explains ${told.join(" | ")}`);
  });

/** The process dies when the database has done its work, before the answer arrives. */
const dieDuring = (ops: readonly Op[]): Command =>
  command(`${texts(ops)}, and the process dies`, async (model, rig) => {
    const { stage } = rig;
    // Not the answer to something else.
    await stage.ledger.flush();
    const isDead = stage.proxy.dieAtNextAnswer();
    const asked = Promise.allSettled(ops.map((op) => rig.run(stage.ledger, op)));
    await isDead;
    const node = await stage.die();
    await asked;
    model.deadNodes.add(node);
    // All of it or nothing: on a busy machine the answer can be that the statement took too long.
    const copy = model.clone();
    copy.apply(ops, node, rig.byId);
    if (isDeepStrictEqual(await rig.see(), rig.expected(copy))) Object.assign(model, copy);
  });

const die = (): Command =>
  command("the process dies", async (model, rig) => {
    model.deadNodes.add(await rig.stage.die());
  });

const expire = (slots: readonly number[]): Command =>
  command(`expire ${slots.join(", ")}`, async (model, rig) => {
    for (const slot of slots) {
      const hold = model.holds.get(slot);
      if (hold?.state === "open") hold.isExpired = true;
    }
    await rig.stage.pool.query(
      "update open_hold set expires_at = now() - interval '1 s' where id = any($1)",
      [slots.map((slot) => rig.id(slot))],
    );
  });

const sweep = (): Command =>
  command("sweep", async (model, rig) => {
    await sweepAccount(model, rig);
  });

/** Of this account alone, for others run beside it: the two halves of a sweep. */
async function sweepAccount(model: ModelAccount, rig: Rig): Promise<void> {
  const { pool } = rig.stage;
  await pool.query("update node set ended = now() where id = any($1)", [[...model.deadNodes]]);
  await pool.query(
    `select ledger_recover_holds($1, array(
       select id from open_hold where id = any($2::uuid[])))`,
    [rig.accountId, [...model.holds.keys()].map((slot) => rig.id(slot))],
  );
  model.sweep(rig.byId);
}

/** Inside a transaction of another room, which may be rolled back. */
const inTransaction = (ops: readonly Op[], isKept: boolean): Command =>
  command(
    `${texts(ops)} in a transaction${isKept ? "" : " that is rolled back"}`,
    async (model, rig) => {
      const settles = ops.filter((op) => op.kind === "settle");
      const holds = ops.filter((op) => op.kind === "hold");
      const client = await rig.stage.pool.connect();
      let isOpen = true;
      try {
        await client.query("begin");
        await applyIn(client, rig.batch(settles, holds));
        await client.query(isKept ? "commit" : "rollback");
        isOpen = false;
      } finally {
        // One that is used again has planned its statements: a new one takes longer for that than
        // for all the rest.
        client.release(isOpen);
      }
      const keyless = holds.map((op) => ({ ...op, key: "none" as const }));
      if (isKept) model.apply([...settles, ...keyless], "", rig.byId);
    },
  );

const bookOne = (text: string, reference: string, amountNanos: bigint, slot?: number): Command =>
  command(`${text} ${slot ?? ""} ${amountNanos} (${reference})`, async (model, rig) => {
    const callId = slot === undefined ? undefined : rig.id(slot);
    const kind = callId === undefined ? LedgerKind.TOP_UP : LedgerKind.REFUND;
    const booking: Booking = { kind, accountId: rig.accountId, amountNanos, reference, callId };
    const came = await book(rig.stage.pool, booking).catch((error: unknown) => {
      if (error instanceof GatewayError) return undefined;
      throw error;
    });
    const expected = model.book(reference, amountNanos, slot);
    equal(came && (came.replayed ? "replayed" : "booked"), expected);
  });

function texts(ops: readonly Op[]): string {
  const text = (op: Op): string => {
    if (op.kind === "hold") return `hold ${op.slot} ${op.nanos} ${op.key}`;
    const told =
      op.kind === "extend" && op.checkpoint !== undefined ? ` told ${op.checkpoint}` : "";
    return `${op.kind} ${op.slot} ${op.nanos}${told}`;
  };
  return ops.map(text).join(" + ");
}

/** The initial calls of a sequence occur more often than unknown ones. */
const slot = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 2 }) },
  { weight: 1, arbitrary: fc.integer({ min: 3, max: 5 }) },
);
const begun: readonly Op[] = [
  { kind: "hold", slot: 0, nanos: 20n, key: "none" },
  { kind: "hold", slot: 1, nanos: 20n, key: "limited" },
  { kind: "hold", slot: 2, nanos: 20n, key: "free" },
];
const nanos = (max: number) => fc.integer({ min: 0, max }).map(BigInt);
const key = fc.constantFrom<KeyName>("none", "limited", "free");
const hold = fc.record({
  kind: fc.constant("hold" as const),
  slot: fc.integer({ min: 2, max: 5 }),
  nanos: nanos(60),
  key,
});
const settle = fc.record({
  kind: fc.constant("settle" as const),
  slot,
  nanos: fc.oneof(fc.constant(0n), nanos(90), nanos(90)),
});
const extend = fc.record({
  kind: fc.constant("extend" as const),
  slot,
  nanos: nanos(100),
  checkpoint: fc.option(nanos(70), { nil: undefined }),
});
const op: fc.Arbitrary<Op> = fc.oneof(hold, settle, extend);
/**
 * Each call at most once per kind: duplicates would be answered twice, in random order. A hold is
 * extended only after its acknowledgement, because a re-sent batch would find it.
 */
const opsOf = (max: number): fc.Arbitrary<Op[]> =>
  fc
    .uniqueArray(op, { minLength: 1, maxLength: max, selector: (one) => `${one.kind}${one.slot}` })
    .map((ops) => {
      const held = new Set(ops.filter((one) => one.kind === "hold").map((one) => one.slot));
      return ops.filter((one) => one.kind !== "extend" || !held.has(one.slot));
    });
const isRare = fc.integer({ min: 0, max: 9 }).map((n) => n === 0);
const reference = fc.constantFrom("a", "b", "c", "d");

const commands = fc.commands(
  [
    fc.tuple(opsOf(1), isRare).map((args) => together(...args)),
    fc
      .tuple(
        hold.map((one) => [one]),
        isRare,
      )
      .map((args) => together(...args)),
    fc.tuple(opsOf(5), isRare).map((args) => together(...args)),
    fc.tuple(op, op).map((args) => race(...args)),
    fc.tuple(opsOf(4), fc.boolean()).map((args) => inTransaction(...args)),
    fc.array(slot, { minLength: 1, maxLength: 3 }).map(expire),
    fc.constant(sweep()),
    opsOf(3).map(dieDuring),
    isRare.map((rare) => (rare ? die() : sweep())),
    fc.tuple(reference, nanos(99)).map(([ref, n]) => bookOne("top up", ref, n + 1n)),
    fc.tuple(reference, nanos(30), slot).map(([ref, n, s]) => bookOne("refund", ref, n + 1n, s)),
  ],
  { maxCommands: 16, size: "max" },
);

/** Number of parallel sequences: they mostly wait for the database. */
const beside = 4;

/** Number of groups per audit, which reads all that the previous ones have left. */
const groupsPerAudit = 20;

/**
 * Runs `numRuns` sequences of commands, each on a fresh account, and audits the books. Throws with
 * the seed and the shortest counterexample if one fails.
 *
 * @param seed repeats a run. Default: of chance; printed at a failure.
 */
export async function checkLedger(
  { pool, url }: { pool: Pool; url: string },
  numRuns: number,
  seed?: number,
): Promise<void> {
  const stages = await Promise.all(Array.from({ length: beside }, () => Stage.open(pool, url)));
  let groups = 0;
  let isBroken = false;
  const group = fc.tuple(commands, commands, commands, commands);
  const property = fc.asyncProperty(group, async (sequences) => {
    const runs = sequences.map((one, index) => runSequence(stages[index] as Stage, one));
    const failed = (await Promise.allSettled(runs)).find((run) => run.status === "rejected");
    // Open holds of a failed sequence are no further finding.
    isBroken ||= failed !== undefined;
    if (failed) throw failed.reason;
    if (++groups % groupsPerAudit === 0 && !isBroken) deepEqual(await auditLedger(pool), []);
  });
  try {
    await fc.assert(property, {
      numRuns: Math.ceil(numRuns / beside),
      ...(seed !== undefined && { seed }),
    });
    deepEqual(await auditLedger(pool), []);
  } finally {
    await Promise.all(stages.map((stage) => stage.close()));
  }
}

async function runSequence(stage: Stage, sequence: Iterable<Command>): Promise<void> {
  const rig = new Rig(stage);
  const model = new ModelAccount();
  const { accountId } = rig;
  model.book("start", 100n);
  const kind = LedgerKind.TOP_UP;
  await book(stage.pool, { kind, accountId, amountNanos: 100n, reference: "start" });
  await together(begun, false).run(model, rig);
  await fc.asyncModelRun(() => ({ model, real: rig }), sequence);
  // Whatever is still open ends, so that the books can be looked at as a whole.
  await expire([...model.holds.keys()]).run(model, rig);
  await sweep().run(model, rig);
  equal(model.held, 0n);
}
