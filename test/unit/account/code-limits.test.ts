/** R-KEY-3: how often codes are sent and guessed at, against a model that counts in memory. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CodeRequest } from "../../../src/account/code/codes.ts";
import { addressGroup } from "../../../src/account/code/limits.ts";
import {
  codeChecksMax,
  codeGuessesMax,
  codeMs,
  codeSendsMax,
  codeStrangersShare,
} from "../../../src/core/limits.ts";
import { ErrorCode, type GatewayError } from "../../../src/core/errors.ts";
import { dailyMax, requestOf, type Sender, senders, useCodes } from "./code-rig.ts";

const rig = useCodes();
const dayMs = 24 * 60 * 60_000;

interface Sent {
  readonly request: CodeRequest;
  readonly sender: Sender;
  readonly atMs: number;
  code: string;
  wrong: number;
  isUsed: boolean;
}

/** The expected result, counted in memory. */
class Model {
  nowMs = 0;
  readonly sent: Sent[] = [];

  /** Whether a sending is within every limit. */
  admits(request: CodeRequest, sender: Sender): boolean {
    const isStranger = sender === "stranger";
    const amongStrangers = (other: Sent) => isStranger && other.sender === "stranger";
    const sameOf: Record<keyof typeof codeSendsMax, (other: Sent) => boolean> = {
      phone: (other) => other.request.phone === request.phone && other.sender === sender,
      account: (other) => other.request.accountId === request.accountId,
      address: (other) => amongStrangers(other) && other.request.ipAddress === request.ipAddress,
      country: (other) => amongStrangers(other) && other.request.country === request.country,
    };
    const within = (ms: number) => this.sent.filter(({ atMs }) => this.nowMs - atMs < ms);
    const today = within(dayMs);
    if (today.length >= dailyMax) return false;
    if (today.filter(amongStrangers).length >= dailyMax * codeStrangersShare) return false;
    return Object.entries(codeSendsMax).every(([scope, windows]) =>
      windows.every(({ max, withinMs }) => {
        const same = sameOf[scope as keyof typeof sameOf];
        return within(withinMs).filter(same).length < max;
      }),
    );
  }

  newestOf(phone: string, sender: Sender): Sent | undefined {
    return this.sent.findLast((each) => each.request.phone === phone && each.sender === sender);
  }

  /** Returns the result of checking the newest code. */
  checks(phone: string, sender: Sender, code: string): boolean {
    const newest = this.newestOf(phone, sender);
    if (newest === undefined || newest.isUsed || this.nowMs - newest.atMs >= codeMs) return false;
    const guesses = this.sent
      .filter((each) => each.request.phone === phone && each.sender === sender)
      .filter(({ atMs }) => this.nowMs - atMs < dayMs)
      .reduce((sum, { wrong }) => sum + wrong, 0);
    if (newest.wrong >= codeChecksMax || guesses >= codeGuessesMax) return false;
    if (newest.code === code) return (newest.isUsed = true);
    newest.wrong += 1;
    return false;
  }
}

type Step =
  | {
      readonly do: "send";
      readonly phone: number;
      readonly ip: number;
      readonly account: number;
      readonly sender: Sender;
    }
  | {
      readonly do: "check";
      readonly phone: number;
      readonly sender: Sender;
      readonly isRight: boolean;
    }
  | { readonly do: "pass"; readonly ms: number };

/** Often the first, sometimes one of the others. */
const oftenFirst = (max: number): fc.Arbitrary<number> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: fc.nat(max) });

const anySender = fc.constantFrom<Sender[]>("stranger", ...senders);

const pause = (ms: number): Step => ({ do: "pass", ms });

/**
 * Mostly sendings a while apart and guesses in a row: so that limits are reached, not only neared.
 * All pauses end between the windows, so that the milliseconds of the machine decide nothing.
 */
const steps: fc.Arbitrary<Step[]> = fc
  .array(
    fc.oneof(
      {
        weight: 6,
        arbitrary: fc
          .record({
            do: fc.constant("send" as const),
            phone: oftenFirst(9),
            ip: oftenFirst(2),
            account: oftenFirst(1),
            sender: anySender,
          })
          .map((send): Step[] => [pause(90_000), send]),
      },
      {
        weight: 3,
        arbitrary: fc
          .tuple(oftenFirst(9), anySender, fc.integer({ min: 1, max: 6 }), fc.boolean())
          .map(([phone, sender, wrongs, isRight]): Step[] => [
            ...Array.from(
              { length: wrongs },
              () => ({ do: "check", phone, sender, isRight: false }) as const,
            ),
            ...(isRight ? [{ do: "check", phone, sender, isRight: true } as const] : []),
          ]),
      },
      {
        weight: 1,
        arbitrary: fc
          .constantFrom(20_000, 400_000, 2_000_000, 3_700_000, 90_000_000)
          .map((ms): Step[] => [pause(ms)]),
      },
    ),
    { minLength: 20, maxLength: 60 },
  )
  .map((groups) => groups.flat());

describe("R-KEY-3: the limits of codes", () => {
  it("allow and refuse exactly what a count of all sendings says", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        await rig.clear();
        const { codes } = rig.open();
        const model = new Model();
        for (const each of taken) {
          if (each.do === "pass") {
            await rig.pass(each.ms);
            model.nowMs += each.ms;
            continue;
          }
          if (each.do === "send") {
            const { sender } = each;
            const request = requestOf(each.phone, each.ip, each.account, sender);
            const shown = await codes.send(request).then(
              (sent) => sent.shown,
              (error: unknown) => {
                expect((error as GatewayError).code).toBe(ErrorCode.RATE_LIMIT_EXCEEDED);
                expect((error as GatewayError).retryAfterSeconds).toBeGreaterThan(0);
                return undefined;
              },
            );
            expect(shown !== undefined).toBe(model.admits(request, sender));
            const atMs = model.nowMs;
            if (shown === undefined) continue;
            model.sent.push({ request, sender, atMs, code: shown, wrong: 0, isUsed: false });
            continue;
          }
          const request = requestOf(each.phone, 0, 0, each.sender);
          const right = model.newestOf(request.phone, each.sender)?.code ?? "0000000";
          const code = each.isRight ? right : "x";
          const isRight = await codes.check(request, code).then(
            async (found) => found.use().then(() => true),
            () => false,
          );
          expect(isRight).toBe(model.checks(request.phone, each.sender, code));
        }
      }),
      { numRuns: 8 },
    );
  });

  it("count a crowd that asks at once as one after the other", async () => {
    await rig.clear();
    const { codes, alarms } = rig.open(1_000);
    // Connections that are there: making them would put the crowd into a row.
    await Promise.all(Array.from({ length: 8 }, () => rig.pool.query("select pg_sleep(0.02)")));
    const asked = Array.from({ length: 16 }, () => codes.send(requestOf(7, 0, 0)));
    const done = await Promise.allSettled(asked);
    expect(done.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(alarms).toEqual([]);
  });

  /** Returns how many of many sendings are admitted, each after a pause. */
  async function sentOf(
    count: number,
    request: (index: number) => CodeRequest,
    pauseMs: number,
    max = 1_000,
  ) {
    await rig.clear();
    const { codes } = rig.open(max);
    let sent = 0;
    for (let index = 0; index < count; index++) {
      await rig.pass(pauseMs);
      await codes.send(request(index)).then(
        () => (sent += 1),
        () => {},
      );
    }
    return sent;
  }

  it("the limits of codes are, in a minute, an hour and a day, 1, 5 and 10 to a number", async () => {
    const phone = (index: number) => requestOf(0, index, index % 2);
    expect(await sentOf(4, phone, 10_000)).toBe(1);
    expect(await sentOf(8, phone, 90_000)).toBe(5);
    expect(await sentOf(14, phone, 900_000)).toBe(10);
  });

  it("the limits of codes are, in an hour and a day, 10 and 20 for an account, 10 and 30 for an address", async () => {
    const account = (index: number) => requestOf(index, index, 0);
    expect(await sentOf(14, account, 90_000)).toBe(10);
    expect(await sentOf(24, account, 900_000)).toBe(20);
    const address = (index: number) => ({ ...requestOf(index, 0, 0), accountId: undefined });
    expect(await sentOf(14, address, 90_000)).toBe(10);
    expect(await sentOf(34, address, 900_000)).toBe(30);
  });

  it("strangers who use up every limit of theirs leave the codes of known browsers and sessions (R-KEY-5)", async () => {
    const strangersMax = dailyMax * codeStrangersShare;
    // One of them asks about 200 numbers of the country.
    expect(
      await sentOf(
        210,
        (index) => ({ ...requestOf(index, index, 0), accountId: undefined }),
        1_000,
        1_000,
      ),
    ).toBe(200);
    const { codes } = rig.open(1_000);
    await expect(codes.send(requestOf(999, 0, 0))).rejects.toThrow("numbers of this country");
    await codes.send(requestOf(0, 0, 0, "browser"));
    await codes.send(requestOf(0, 0, 0, "session"));
    // They ask for as many as they get a day, from the owners' address.
    const spread = (index: number) => ({ ...requestOf(index, 0, 0), accountId: undefined });
    expect(await sentOf(dailyMax, spread, 900_000, dailyMax)).toBe(strangersMax);
    const { codes: few } = rig.open();
    await expect(few.send(requestOf(999, 9, 1))).rejects.toThrow("to new browsers today");
    for (let index = strangersMax; index < dailyMax; index++) {
      await few.send({ ...requestOf(index, 0, 0, "browser"), accountId: undefined });
    }
    await expect(few.send(requestOf(0, 0, 1, "session"))).rejects.toThrow("no more codes today");
  });

  it("a known browser's codes to a number do not use up those of its sessions (R-KEY-5)", async () => {
    for (const [used, other] of [
      ["browser", "session"],
      ["session", "browser"],
    ] as const) {
      const request = (sender: Sender) => ({ ...requestOf(0, 0, 0, sender), accountId: undefined });
      expect(await sentOf(14, () => request(used), 900_000)).toBe(10);
      const { codes } = rig.open(1_000);
      await expect(codes.send(request(used))).rejects.toThrow("to this number");
      await codes.send(request(other));
    }
  });

  it("alarm the operator where a limit for all is reached", async () => {
    await rig.clear();
    const { codes, alarms } = rig.open(1);
    await codes.send(requestOf(1, 1, 0));
    await expect(codes.send(requestOf(2, 2, 1))).rejects.toThrow("no more codes today");
    await expect(codes.send(requestOf(3, 3, 1))).rejects.toThrow("no more codes today");
    // Once a minute: who drives it up asks more often.
    expect(alarms).toHaveLength(1);
  });
});

it("IPv6 addresses are counted by their network", () => {
  const groups: Readonly<Record<string, string>> = {
    "192.0.2.7": "192.0.2.7",
    "::ffff:192.0.2.7": "192.0.2.7",
    "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
    "2001:db8::6": "2001:db8:0:0::/64",
    "::1": "0:0:0:0::/64",
  };
  for (const [address, group] of Object.entries(groups)) expect(addressGroup(address)).toBe(group);
});
