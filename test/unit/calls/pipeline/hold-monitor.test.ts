/** The money of a running stream, with a ledger that answers late or never. */
import { create } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { type Usage, UsageSchema, UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import type { ExtendOperation, ExtendVerdict } from "../../../../src/billing/ledger/ledger.ts";
import { extendWaitMs, streamOutageMs } from "../../../../src/core/limits.ts";
import { ErrorCode, type GatewayError } from "../../../../src/core/errors.ts";
import { Call } from "../../../../src/calls/pipeline/call.ts";
import { HoldMonitor } from "../../../../src/calls/pipeline/hold-monitor.ts";
import { planHold } from "../../../../src/calls/pipeline/hold-plan.ts";

/** A nano-USD a token, of input and of output. */
const costOf = ({ inputTokens, outputTokens }: Usage): bigint => BigInt(inputTokens + outputTokens);
const inputTokens = 10;
const limits = { inputTokens, priceOf: (output: number) => BigInt(inputTokens + output) };
const plan = planHold({ ...limits, maxTokens: 1_000, firstTokens: 100 });

class Scene {
  readonly call = new Call({
    id: "01900000-0000-7000-8000-000000000000",
    startMs: 0,
    requestId: "r",
    accountId: "a",
    keyId: "k",
    discountBp: 0,
    path: "/v1/chat/completions",
  });
  readonly asked: ExtendOperation[] = [];
  readonly answers: Array<(verdict: ExtendVerdict) => void> = [];
  stopped: Usage | undefined;
  failed: GatewayError | undefined;
  readonly reply = {
    textBytes: 0,
    isOver: false,
    unreadEventBytes: 0,
    allowEvent: () => void (this.reply.unreadEventBytes = 0),
    stop: (usage: Usage | undefined) => void (this.stopped = usage),
    fail: (error: GatewayError) => void (this.failed = error),
  };
  readonly hold: HoldMonitor;

  constructor(held = plan) {
    this.call.heldNanos = held.firstNanos;
    this.call.status = 200;
    this.hold = new HoldMonitor({
      call: this.call,
      reply: this.reply,
      plan: held,
      ledger: {
        extend: (operation) => {
          this.asked.push(operation);
          return new Promise((resolve) => this.answers.push(resolve));
        },
      },
      charge: () => this.#charge(),
      costOf,
      nowMs: 0,
    });
  }

  /** So many tokens have come in all. */
  come(tokens: number): void {
    void this.wait(tokens);
  }

  /** As {@link come}. @returns until when nothing more is to be read; undefined means read on */
  wait(tokens: number): Promise<void> | undefined {
    this.reply.textBytes = tokens * 4;
    return this.hold.onRead();
  }

  /** Answers the last request to the ledger. */
  async answer(heldNanos: bigint, rest?: { closed: true }): Promise<void> {
    this.answers.at(-1)?.({ heldNanos, ...rest });
    await Promise.resolve();
  }

  #charge(): void {
    const { call, reply } = this;
    call.usage = create(UsageSchema, { inputTokens, outputTokens: reply.textBytes / 4 });
    call.usageSource = UsageSource.ESTIMATED;
    call.isCharged = reply.textBytes > 0;
    if (call.isCharged) call.costNanos = costOf(call.usage);
  }
}

let scene: Scene;
beforeEach(() => {
  scene = new Scene();
});

describe("the hold of a stream (R-MON-5)", () => {
  describe("an event that may be longer than what is held", () => {
    const waits = (tokens: number): Promise<void> => {
      scene.reply.unreadEventBytes = tokens * 4;
      return scene.hold.coverEvent();
    };

    it("is read at once where the hold covers it, without the ledger", async () => {
      await waits(99);
      expect(scene).toMatchObject({ asked: [], stopped: undefined });
      expect(scene.reply.unreadEventBytes).toBe(0);
    });

    it("is read once the ledger has extended the hold to cover it", async () => {
      scene.come(40);
      const covered = waits(200);
      expect(scene.asked).toMatchObject([{ amountNanos: 350n, checkpointNanos: 50n }]);
      expect(scene.reply.unreadEventBytes).toBe(800);
      await scene.answer(350n);
      await covered;
      expect(scene.reply.unreadEventBytes).toBe(0);
      expect(scene.stopped).toBeUndefined();
    });

    it("is not read where the ledger grants less: the reply ends, and what came before is charged", async () => {
      scene.come(40);
      const refused = waits(200);
      await scene.answer(240n);
      await refused;
      expect(scene.call).toMatchObject({ ending: CallEnding.OUT_OF_BALANCE, costNanos: 50n });
      expect(scene.stopped).toMatchObject({ outputTokens: 40 });
      expect(scene.reply.unreadEventBytes).toBe(800);
    });

    it("is called for after an answer to an earlier request that did not request it", async () => {
      scene.come(50);
      const covered = waits(200);
      expect(scene.asked).toHaveLength(1);
      await scene.answer(210n);
      await vi.waitFor(() => expect(scene.asked).toHaveLength(2));
      await scene.answer(460n);
      await covered;
      expect(scene.reply.unreadEventBytes).toBe(0);
    });

    it("is read after a while where the ledger stays silent and it is not long, as in any outage", async () => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      onTestFinished(() => void vi.useRealTimers());
      const covered = waits(200);
      vi.advanceTimersByTime(extendWaitMs - 1);
      expect(scene.reply.unreadEventBytes).toBe(800);
      vi.advanceTimersByTime(1);
      await covered;
      expect(scene.reply.unreadEventBytes).toBe(0);
      await waits(100);
      expect(scene).toMatchObject({ stopped: undefined, failed: undefined });
    });

    it("fails with the reply where the ledger stays silent and it is long, before anything of it is read", async () => {
      const refused = waits(2_000);
      scene.hold.check(streamOutageMs - 1);
      expect(scene.failed).toBeUndefined();
      scene.hold.check(streamOutageMs);
      await refused;
      expect(scene.failed?.code).toBe(ErrorCode.SERVICE_UNAVAILABLE);
    });
  });

  it("the hold of a stream is extended once half a step is left, with a checkpoint of the cost", async () => {
    scene.come(49);
    expect(scene.asked).toEqual([]);
    scene.come(50);
    expect(scene.asked).toMatchObject([{ amountNanos: 210n, checkpointNanos: 60n }]);
    await scene.answer(210n);
    expect(scene.call.heldNanos).toBe(210n);
    scene.come(149);
    expect(scene.asked).toHaveLength(1);
    scene.come(150);
    expect(scene.asked).toHaveLength(2);
  });

  it("the hold of a stream lets the stream continue while the ledger is silent, and stops it when the ledger refuses", async () => {
    scene.come(50);
    scene.come(400);
    expect(scene).toMatchObject({ stopped: undefined, failed: undefined });
    await scene.answer(110n);
    expect(scene.call).toMatchObject({
      ending: CallEnding.OUT_OF_BALANCE,
      errorCode: "insufficient_balance",
      costNanos: 110n,
      heldNanos: 110n,
    });
    // Text beyond the available balance is not charged.
    expect(scene.stopped).toMatchObject({ inputTokens, outputTokens: 100 });
    expect(scene.hold.isUsedUp).toBe(true);
  });

  it("the hold of a stream is not read on once it is used up, until the ledger has answered (R-MON-12)", async () => {
    expect(scene.wait(50)).toBeUndefined();
    expect(scene.wait(99)).toBeUndefined();
    const isAnswered = scene.wait(100);
    expect(isAnswered).toBeInstanceOf(Promise);
    expect(scene.wait(101)).toBe(isAnswered);
    await scene.answer(210n);
    await isAnswered;
    expect(scene.wait(102)).toBeUndefined();
  });

  it("the hold of a stream is read on in an outage after a short wait, which comes once", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    scene.come(50);
    const isOver = scene.wait(100);
    vi.advanceTimersByTime(extendWaitMs);
    await isOver;
    expect(scene.wait(200)).toBeUndefined();
    expect(scene).toMatchObject({ stopped: undefined, failed: undefined });
  });

  it("the hold of a stream bounds how much text is read at once by what it covers", () => {
    expect(scene.hold.bytesAhead).toBe(100 * 4);
    scene.come(60);
    expect(scene.hold.bytesAhead).toBe(40 * 4);
    const long = new Scene(planHold({ ...limits, maxTokens: 100_000, firstTokens: 50_000 }));
    expect(long.hold.bytesAhead).toBe(50_000 * 4);
  });

  it("the hold of a stream counts a late grant for all text that came meanwhile", async () => {
    scene.come(50);
    scene.come(400);
    await scene.answer(210n);
    expect(scene.stopped).toBeUndefined();
    // It has to be asked for what came meanwhile too.
    expect(scene.asked.at(-1)?.amountNanos).toBe(510n);
    await scene.answer(510n);
    expect(scene.stopped).toBeUndefined();
    expect(scene.call.heldNanos).toBe(510n);
  });

  it("exceeds the maximum cost only where the vendor ignores the output limit (R-MON-12)", async () => {
    scene.come(950);
    expect(scene.asked.at(-1)?.amountNanos).toBe(1_010n);
    await scene.answer(1_010n);
    scene.come(1_000);
    expect(scene.asked).toHaveLength(1);
    scene.come(1_100);
    expect(scene.asked.at(-1)?.amountNanos).toBe(1_210n);
    await scene.answer(1_210n);
    expect(scene.call.heldNanos).toBe(1_210n);
    expect(scene.stopped).toBeUndefined();
  });

  it("the hold of a stream lets a reply with long words pass its output limit, and stops one of twice that length", async () => {
    scene.come(950);
    await scene.answer(1_010n);
    scene.come(1_100);
    await scene.answer(1_010n);
    scene.come(1_999);
    expect(scene.stopped).toBeUndefined();
    scene.come(2_001);
    expect(scene.stopped).toMatchObject({ outputTokens: 1_000 });
    expect(scene.call).toMatchObject({ ending: CallEnding.OUT_OF_BALANCE, costNanos: 1_010n });
  });

  it("the hold of a stream stops no stream that has ended by itself", async () => {
    scene.come(400);
    scene.reply.isOver = true;
    await scene.answer(110n);
    expect(scene).toMatchObject({ stopped: undefined, call: { ending: CallEnding.UNSPECIFIED } });
  });
});

describe("an unreachable database", () => {
  it("an unreachable database ends a stream whose hold is used up after 60 s, with 503", () => {
    scene.come(120);
    scene.hold.check(59_000);
    expect(scene.failed).toBeUndefined();
    scene.hold.check(61_000);
    expect(scene.failed).toMatchObject({ status: 503 });
    expect(scene.call).toMatchObject({
      ending: CallEnding.GATEWAY_FAILED,
      errorCode: "service_unavailable",
    });
  });

  it("an unreachable database ends a stream with 503, not as out of balance, where recovery settled its hold", async () => {
    scene.come(80);
    await scene.answer(0n, { closed: true });
    expect(scene.failed).toBeUndefined();
    scene.come(120);
    while (scene.failed === undefined) await scene.answer(0n, { closed: true });
    expect(scene.failed).toMatchObject({ status: 503 });
    expect(scene.stopped).toBeUndefined();
    // All that came is charged when it settles: the balance has not been asked.
    expect(scene.hold.isUsedUp).toBe(false);
    expect(scene.call).toMatchObject({ ending: CallEnding.GATEWAY_FAILED, costNanos: 130n });
  });

  it("an unreachable database does not end a stream whose hold is not used up", () => {
    scene.come(60);
    scene.hold.check(61_000);
    expect(scene.failed).toBeUndefined();
    scene.come(100);
    scene.hold.check(62_000);
    expect(scene.failed).toMatchObject({ status: 503 });
  });
});

describe("checkpoints", () => {
  it("checkpoints are sent after 1 s and then every 5 s, with the record of a lost call", async () => {
    scene.come(5);
    scene.hold.check(500);
    expect(scene.asked).toEqual([]);
    scene.hold.check(1_000);
    expect(scene.asked).toMatchObject([
      {
        amountNanos: plan.firstNanos,
        checkpointNanos: 15n,
        record: { ending: CallEnding.GATEWAY_LOST, cost: "15", output_tokens: 5, status: 200 },
      },
    ]);
    await scene.answer(plan.firstNanos);
    for (const nowMs of [2_000, 5_000]) scene.hold.check(nowMs);
    expect(scene.asked).toHaveLength(1);
    scene.hold.check(6_000);
    expect(scene.asked).toHaveLength(2);
    expect(scene.call.ending).toBe(CallEnding.UNSPECIFIED);
  });

  it("checkpoints do not pile up while one is pending", () => {
    for (let nowMs = 1_000; nowMs < 30_000; nowMs += 1_000) scene.hold.check(nowMs);
    expect(scene.asked).toHaveLength(1);
  });

  it("charge nothing for a stream without content", () => {
    scene.hold.check(1_000);
    expect(scene.asked).toMatchObject([{ checkpointNanos: 0n, record: { cost: "0" } }]);
  });

  it("checkpoints end with the stream", async () => {
    scene.hold.check(1_000);
    scene.hold.end();
    await scene.answer(1n);
    expect(scene.call.heldNanos).toBe(plan.firstNanos);
    scene.come(500);
    expect(scene.asked).toHaveLength(1);
  });
});
