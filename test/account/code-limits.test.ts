/** R-KEY-3: how often codes are sent and guessed at, against a model that counts in memory. */
import * as fc from "fast-check";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CodeRequest, createCodes } from "../../src/account/code/codes.ts";
import { addressGroup } from "../../src/account/code/limits.ts";
import type { Sms } from "../../src/account/sms/sms.ts";
import {
  codeChecksMax,
  codeGuessesMax,
  codeMs,
  codeSendsMax,
} from "../../src/config/sign-in-limits.ts";
import { ErrorCode, GatewayError } from "../../src/errors.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

let database: TestDatabase;
let pool: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = new Pool({ connectionString: database.url, max: 4 });
});
afterAll(async () => {
  await pool?.end();
  await database?.close();
});

const dailyMax = 14;
const dayMs = 24 * 60 * 60_000;

/** Codes that are sent to nobody, and what was alarmed of. */
function openCodes(max = dailyMax) {
  const alarms: string[] = [];
  const sms: Sms = {
    isDevelopment: true,
    send: async () => {},
    confirmed() {},
    close: async () => {},
  };
  const codes = createCodes({
    pool,
    masterKey: () => Buffer.alloc(32, 1),
    sms,
    dailyMax: max,
    observer: { onSend() {}, onCheck() {} },
    alarm: (message) => void alarms.push(message),
  });
  return { codes, alarms };
}

const accounts = ["0190aaaa-0000-7000-8000-000000000001", "0190aaaa-0000-7000-8000-000000000002"];

function requestOf(phone: number, ip: number, account: number): CodeRequest {
  return {
    purpose: 1,
    subject: "",
    phone: `+8613800138${String(phone).padStart(3, "0")}`,
    binding: "browser",
    country: "86",
    ipAddress: `192.0.2.${ip}`,
    accountId: accounts[account],
    language: "en",
    isWanted: true,
    isAwaited: true,
  };
}

/** Lets time pass for everything that is stored. */
async function pass(ms: number): Promise<void> {
  await pool.query(
    `update one_time_code set create_time = create_time - $1 * interval '1 ms',
       expire_time = expire_time - $1 * interval '1 ms'`,
    [ms],
  );
}

interface Sent {
  readonly request: CodeRequest;
  readonly atMs: number;
  code: string;
  wrong: number;
  isUsed: boolean;
}

/** What should happen, counted in memory. */
class Model {
  nowMs = 0;
  readonly sent: Sent[] = [];

  /** Whether a sending is within every limit. */
  admits(request: CodeRequest): boolean {
    const sameOf = {
      phone: (other: CodeRequest) => other.phone === request.phone,
      account: (other: CodeRequest) => other.accountId === request.accountId,
      address: (other: CodeRequest) => other.ipAddress === request.ipAddress,
      country: (other: CodeRequest) => other.country === request.country,
    };
    const within = (ms: number) => this.sent.filter(({ atMs }) => this.nowMs - atMs < ms);
    if (within(dayMs).length >= dailyMax) return false;
    return Object.entries(codeSendsMax).every(([scope, windows]) =>
      windows.every(({ max, withinMs }) => {
        const same = sameOf[scope as keyof typeof sameOf];
        return within(withinMs).filter((each) => same(each.request)).length < max;
      }),
    );
  }

  newestOf(phone: string): Sent | undefined {
    return this.sent.findLast(({ request }) => request.phone === phone);
  }

  /** What a check of the newest code comes to. */
  checks(phone: string, code: string): boolean {
    const newest = this.newestOf(phone);
    if (newest === undefined || newest.isUsed || this.nowMs - newest.atMs >= codeMs) return false;
    const guesses = this.sent
      .filter(({ request, atMs }) => request.phone === phone && this.nowMs - atMs < dayMs)
      .reduce((sum, { wrong }) => sum + wrong, 0);
    if (newest.wrong >= codeChecksMax || guesses >= codeGuessesMax) return false;
    if (newest.code === code) return (newest.isUsed = true);
    newest.wrong += 1;
    return false;
  }
}

type Step =
  | { readonly do: "send"; readonly phone: number; readonly ip: number; readonly account: number }
  | { readonly do: "check"; readonly phone: number; readonly isRight: boolean }
  | { readonly do: "pass"; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("send" as const),
      phone: fc.nat(7),
      ip: fc.nat(1),
      account: fc.nat(1),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("check" as const),
      phone: fc.nat(3),
      isRight: fc.integer({ min: 0, max: 9 }).map((chance) => chance === 0),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("pass" as const),
      // Between the windows, so that the milliseconds of the machine decide nothing.
      ms: fc.constantFrom(
        45_000,
        90_000,
        90_000,
        90_000,
        400_000,
        2_000_000,
        3_700_000,
        90_000_000,
      ),
    }),
  },
);

describe("R-KEY-3: the limits of codes", () => {
  it("allow and refuse exactly what a count of all sendings says", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
        await pool.query("truncate one_time_code");
        const { codes } = openCodes();
        const model = new Model();
        for (const each of steps) {
          if (each.do === "pass") {
            await pass(each.ms);
            model.nowMs += each.ms;
            continue;
          }
          if (each.do === "send") {
            const request = requestOf(each.phone, each.ip, each.account);
            const shown = await codes.send(request).then(
              (sent) => sent.shown,
              (error: unknown) => {
                expect((error as GatewayError).code).toBe(ErrorCode.RATE_LIMIT_EXCEEDED);
                expect((error as GatewayError).retryAfterSeconds).toBeGreaterThan(0);
                return undefined;
              },
            );
            expect(shown !== undefined).toBe(model.admits(request));
            const atMs = model.nowMs;
            if (shown === undefined) continue;
            model.sent.push({ request, atMs, code: shown, wrong: 0, isUsed: false });
            continue;
          }
          const request = requestOf(each.phone, 0, 0);
          const right = model.newestOf(request.phone)?.code ?? "0000000";
          const code = each.isRight ? right : "x";
          const isRight = await codes.check(request, code).then(
            async (found) => found.use().then(() => true),
            () => false,
          );
          expect(isRight).toBe(model.checks(request.phone, code));
        }
      }),
      { numRuns: 20 },
    );
  });

  it("count a crowd that asks at once as one after the other", async () => {
    await pool.query("truncate one_time_code");
    const { codes, alarms } = openCodes(1_000);
    const asked = Array.from({ length: 8 }, () => codes.send(requestOf(7, 0, 0)));
    const done = await Promise.allSettled(asked);
    expect(done.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(alarms).toEqual([]);
  });

  it("alarm the operator where a limit for all is reached", async () => {
    await pool.query("truncate one_time_code");
    const { codes, alarms } = openCodes(1);
    await codes.send(requestOf(1, 1, 0));
    await expect(codes.send(requestOf(2, 2, 1))).rejects.toThrow("no more codes today");
    expect(alarms).toHaveLength(1);
  });
});

describe("R-KEY-3: a code", () => {
  it("serves for its own purpose, subject, number and browser only", async () => {
    await pool.query("truncate one_time_code");
    const { codes } = openCodes();
    const request = { ...requestOf(1, 1, 0), subject: accounts[0] ?? "" };
    const { shown = "" } = await codes.send(request);
    const others = [
      { ...request, purpose: 2 },
      { ...request, subject: accounts[1] ?? "" },
      { ...request, phone: "+8613800138999" },
      { ...request, binding: "another browser" },
    ];
    for (const other of others) await expect(codes.check(other, shown)).rejects.toThrow("expired");
    await (await codes.check(request, shown)).use();
    await expect(codes.check(request, shown)).rejects.toThrow("expired");
  });

  it("is used up by one of many that present it at once", async () => {
    await pool.query("truncate one_time_code");
    const { codes } = openCodes();
    const request = requestOf(1, 1, 0);
    const { shown = "" } = await codes.send(request);
    const all = Array.from({ length: 6 }, async () => (await codes.check(request, shown)).use());
    const done = await Promise.allSettled(all);
    expect(done.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  it("is in no table, and nobody who is not wanted has one that is right", async () => {
    await pool.query("truncate one_time_code");
    const { codes } = openCodes();
    const request = requestOf(1, 1, 0);
    const { shown = "" } = await codes.send({ ...request, isWanted: false });
    const { rows } = await pool.query<{ row: string }>(
      "select t::text as row from one_time_code t",
    );
    expect(rows.map(({ row }) => row).join()).not.toContain(shown);
    await expect(codes.check(request, shown)).rejects.toThrow("wrong");
  });
});

it("counts addresses of version 6 by their network", () => {
  const groups: Readonly<Record<string, string>> = {
    "192.0.2.7": "192.0.2.7",
    "::ffff:192.0.2.7": "192.0.2.7",
    "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
    "2001:db8::6": "2001:db8:0:0::/64",
    "::1": "0:0:0:0::/64",
  };
  for (const [address, group] of Object.entries(groups)) expect(addressGroup(address)).toBe(group);
});
