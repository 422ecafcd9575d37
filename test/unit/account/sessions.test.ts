/** The life of console sessions, against a model. */
import * as fc from "fast-check";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SignInMethod } from "../../../gen/uas/account/v1/session_pb.ts";
import { UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import { createAccountJobs } from "../../../src/account/jobs.ts";
import { createSessions, type Sessions } from "../../../src/account/session/store.ts";
import { createUsers } from "../../../src/account/user/store.ts";
import {
  sessionIdleMs,
  sessionMs,
  sessionOverlapMs,
  sessionsMax,
} from "../../../src/core/limits.ts";
import type { BrowserSession } from "../../../src/core/browser-session.ts";
import { idSource, newId } from "../../../src/core/uuid.ts";
import { openDatabase, type Database } from "../../../src/db/database.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

let database: TestDatabase;
let pool: Pool;
let connected: Database;
let sessions: Sessions;
const userIds: string[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  connected = await openDatabase(database.url);
  pool = connected.pool;
  sessions = createSessions(connected, newId);
  for (const role of [UserRole.MEMBER, UserRole.OPERATOR]) {
    const user = { accountId: undefined, accountName: "a", name: "", role, phone: null };
    userIds.push((await createUsers(connected.orm, newId).add(user)).id);
  }
});
afterAll(async () => {
  await connected?.close();
  await database?.close();
});

/** A browser, as the store sees it. */
class FakeVisit implements BrowserSession {
  readonly ipAddress = "192.0.2.1";
  readonly userAgent = "test";
  token: string | undefined;

  keep(token: string | undefined): void {
    this.token = token;
  }

  readonly known = undefined;
  remember(): void {}
}

/** Signs a user in who has neither a password nor an authenticator. */
function open(visit: BrowserSession, id: string, method: SignInMethod) {
  return sessions.open(visit, { id, passwordHash: null, totp: null }, method);
}

async function pass(ms: number): Promise<void> {
  await pool.query(
    `update console_session set seen_time = seen_time - $1 * interval '1 ms',
       expire_time = expire_time - $1 * interval '1 ms', create_time = create_time - $1 * interval '1 ms',
       rotate_time = rotate_time - $1 * interval '1 ms'`,
    [ms],
  );
}

interface ModelSession {
  readonly id: string;
  readonly userId: string;
  readonly openedMs: number;
  seenMs: number;
  token: string;
  previous: string | undefined;
  rotatedMs: number;
  hasEnded: boolean;
}

type Step =
  | { readonly do: "open" | "see" | "seeOld" | "rotate" | "end" | "others"; readonly at: number }
  | { readonly do: "pass"; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constantFrom("see", "seeOld", "rotate"), at: fc.nat(5) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("open" as const), at: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("end", "others"), at: fc.nat(5) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("pass" as const),
      // Between the limits, so that the milliseconds of the machine decide nothing.
      ms: fc.constantFrom(3_000, sessionOverlapMs * 2, 5 * 3_600_000, sessionIdleMs + 60_000),
    }),
  },
);

/** Whether a session lives. */
function lives(session: ModelSession, nowMs: number): boolean {
  return (
    !session.hasEnded &&
    nowMs - session.seenMs < sessionIdleMs &&
    nowMs - session.openedMs < sessionMs
  );
}

it("a token counts exactly as long as its session lives and it is the newest, or nearly", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      await pool.query("truncate console_session");
      const known: ModelSession[] = [];
      let nowMs = 0;
      for (const each of steps) {
        if (each.do === "pass") {
          await pass(each.ms);
          nowMs += each.ms;
          continue;
        }
        const session = known[each.at % Math.max(1, known.length)];
        if (each.do === "open" || session === undefined) {
          const visit = new FakeVisit();
          const userId = userIds[each.at % 2] ?? "";
          const row = await open(visit, userId, SignInMethod.CODE);
          const token = visit.token ?? "";
          const fresh = { id: row.id, userId, openedMs: nowMs, seenMs: nowMs, token };
          known.push({ ...fresh, previous: undefined, rotatedMs: 0, hasEnded: false });
        } else if (each.do === "see" || each.do === "seeOld") {
          const isOld = each.do === "seeOld" && session.previous !== undefined;
          const token = isOld ? (session.previous ?? "") : session.token;
          const caller = await sessions.identify(token);
          const counts =
            lives(session, nowMs) && (!isOld || nowMs - session.rotatedMs < sessionOverlapMs);
          const found = "session" in caller ? caller.session?.sessionId : undefined;
          expect(found).toBe(counts ? session.id : undefined);
          const isOperator = session.userId === userIds[1];
          if (counts) expect(caller.kind).toBe(isOperator ? "operator" : "session");
          // Seen no more often than each minute: between, the time stays as it is.
          if (counts && nowMs - session.seenMs > 60_000) session.seenMs = nowMs;
        } else if (each.do === "rotate") {
          if (!lives(session, nowMs)) continue;
          const visit = new FakeVisit();
          await sessions.rotate(visit, session.id);
          expect(visit.token).not.toBe(session.token);
          session.previous = session.token;
          session.token = visit.token ?? "";
          session.rotatedMs = nowMs;
        } else if (each.do === "end") {
          const somebodyElse = userIds.find((id) => id !== session.userId) ?? "";
          await sessions.end(session.id, somebodyElse);
          await sessions.end(session.id, session.userId);
          session.hasEnded = true;
        } else {
          await sessions.endOthers(session.userId, session.id);
          for (const other of known) {
            if (other !== session && other.userId === session.userId) other.hasEnded = true;
          }
        }
      }
      for (const userId of userIds) {
        const listed = await sessions.list({ userId, after: undefined, limit: 100 });
        const expected = known.filter((each) => each.userId === userId && lives(each, nowMs));
        expect(listed.map(({ id }) => id).toSorted()).toEqual(
          expected.map(({ id }) => id).toSorted(),
        );
      }
    }),
    { numRuns: 25 },
  );
});

it("a session ends 7 days after its sign-in, however often it is used", async () => {
  await pool.query("truncate console_session");
  const visit = new FakeVisit();
  await open(visit, userIds[0] ?? "", SignInMethod.CODE);
  const stepMs = sessionIdleMs - 60_000;
  let livedMs = 0;
  while ((await sessions.identify(visit.token ?? "")).kind === "session") {
    await pass(stepMs);
    livedMs += stepMs;
  }
  expect(livedMs).toBeGreaterThan(sessionMs);
  expect(livedMs - stepMs).toBeLessThan(sessionMs);
});

it("signing in again ends what the browser had, and a user has so many sessions at most", async () => {
  await pool.query("truncate console_session");
  const visit = new FakeVisit();
  const [userId = ""] = userIds;
  await open(visit, userId, SignInMethod.PASSWORD);
  const first = visit.token ?? "";
  await open(visit, userId, SignInMethod.PASSWORD);
  expect((await sessions.identify(first)).kind).toBe("anonymous");
  expect((await sessions.identify(visit.token ?? "")).kind).toBe("session");
  for (let count = 0; count < sessionsMax; count++) {
    await open(new FakeVisit(), userId, SignInMethod.PASSWORD);
  }
  expect((await sessions.identify(visit.token ?? "")).kind).toBe("anonymous");
  expect(await sessions.list({ userId, after: undefined, limit: 1_000 })).toHaveLength(sessionsMax);
});

it("a session lives where the ids of all others are of a later time, and ends one of them", async () => {
  await pool.query("truncate console_session");
  const [userId = ""] = userIds;
  // A separate source: later IDs of this process must not follow these.
  const ahead = createSessions(
    connected,
    idSource(() => Date.now() + 86_400_000),
  );
  for (let count = 0; count < sessionsMax; count++) {
    await ahead.open(
      new FakeVisit(),
      { id: userId, passwordHash: null, totp: null },
      SignInMethod.CODE,
    );
  }
  const visit = new FakeVisit();
  const opened = await open(visit, userId, SignInMethod.CODE);
  expect((await sessions.identify(visit.token ?? "")).kind).toBe("session");
  const living = await sessions.list({ userId, after: undefined, limit: 1_000 });
  expect(living).toHaveLength(sessionsMax);
  expect(living.map(({ id }) => id)).toContain(opened.id);
});

it("what has ended is deleted, what lives is not, and no token is stored", async () => {
  await pool.query("truncate console_session");
  const [old, young] = [new FakeVisit(), new FakeVisit()];
  await open(old, userIds[0] ?? "", SignInMethod.LINK);
  await pass(sessionIdleMs + 1_000);
  await open(young, userIds[0] ?? "", SignInMethod.LINK);
  await createAccountJobs({ pool, warn: () => {}, also: async () => {} }).sweep();
  const { rows } = await pool.query<{ row: string }>(
    "select t::text as row from console_session t",
  );
  expect(rows).toHaveLength(1);
  expect(rows[0]?.row).not.toContain(young.token);
  expect((await sessions.identify(young.token ?? "")).kind).toBe("session");
});
