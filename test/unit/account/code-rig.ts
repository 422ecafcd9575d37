/** One-time codes over a separate database with simulated time. */
import { Pool } from "pg";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { type CodeRequest, createCodes } from "../../../src/account/code/codes.ts";
import { CodePurpose, purposeOf } from "../../../src/account/code/limits.ts";
import type { Sms } from "../../../src/account/sms/provider.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

/** The most codes of a day, if a test does not say. */
export const dailyMax = 40;

/** Accounts, by any ids. */
export const accounts = [
  "0190aaaa-0000-7000-8000-000000000001",
  "0190aaaa-0000-7000-8000-000000000002",
];

/** Ready from `beforeAll` on; empty at each test. */
export class CodeRig {
  declare database: TestDatabase;
  declare pool: Pool;

  /** Creates codes that are not sent, and records the alarms. */
  open(max = dailyMax) {
    const alarms: string[] = [];
    const sms: Sms = {
      isDevelopment: true,
      send: async () => {},
      confirmed() {},
      close: async () => {},
    };
    const codes = createCodes({
      pool: this.pool,
      masterKey: () => Buffer.alloc(32, 1),
      sms,
      dailyMax: () => max,
      observer: { onSend() {}, onCheck() {} },
      alarm: (message) => void alarms.push(message),
    });
    return { codes, alarms };
  }

  async clear(): Promise<void> {
    await this.pool.query("truncate one_time_code");
  }

  /** Lets time pass for everything that is stored. */
  async pass(ms: number): Promise<void> {
    await this.pool.query(
      `update one_time_code set create_time = create_time - $1 * interval '1 ms',
         expire_time = expire_time - $1 * interval '1 ms'`,
      [ms],
    );
  }
}

/** Registers start and end for a test file. */
export function useCodes(): CodeRig {
  const rig = new CodeRig();
  beforeAll(async () => {
    rig.database = await createTestDatabase();
    rig.pool = new Pool({ connectionString: rig.database.url, max: 8 });
  });
  beforeEach(() => rig.clear());
  afterAll(async () => {
    await rig.pool?.end();
    await rig.database?.close();
  });
  return rig;
}

/** Kinds of requesters of codes, which are counted separately. */
export const senders = ["stranger", "browser", "session"] as const;

/** One of {@link senders}. */
export type Sender = (typeof senders)[number];

/** A code for one of many numbers, from one of many addresses, for one of {@link accounts}. */
export function requestOf(
  phone: number,
  ip: number,
  account: number,
  sender: Sender = "stranger",
): CodeRequest {
  return {
    purpose: sender === "session" ? purposeOf(CodeAction.REVEAL_KEY) : CodePurpose.SIGN_IN,
    subject: "",
    phone: `+8613800138${String(phone).padStart(3, "0")}`,
    binding: sender,
    country: "86",
    ipAddress: `192.0.2.${ip}`,
    accountId: accounts[account],
    language: "en",
    isKnown: sender !== "stranger",
    isWanted: true,
    isAwaited: true,
  };
}
