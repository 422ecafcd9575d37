/**
 * Counts wrong passwords and authenticator codes. After too many, attempts are refused for a while.
 * SQL: counted under advisory locks.
 */
import { createHash } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import { failuresMax } from "../../core/limits.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { transact } from "../../db/pool/transaction.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { newId } from "../../core/uuid.ts";
import { addressGroup, duration } from "../code/limits.ts";

/** The keys that an attempt is counted by. */
export interface Attempt {
  /** A user id, or the text typed in its place. */
  readonly subject: string;
  readonly ipAddress: string;
  /**
   * The browser with which the user has signed in before, or the session: its failures count apart
   * from those of strangers. A stranger by default.
   */
  readonly knownAs?: string | undefined;
}

/** The attempts of all processes. */
export interface Failures {
  /**
   * Counts an attempt as failed before it is checked, so that concurrent attempts cannot escape the
   * count.
   *
   * @returns removes the failure after a successful attempt
   * @throws GatewayError RATE_LIMIT_EXCEEDED after too many failures
   */
  begin(attempt: Attempt): Promise<() => Promise<void>>;
  /**
   * As {@link begin}, for authenticator codes: also counts over the authenticator's life (R-KEY-5).
   * A right code resets the count of a known browser or session; the count of strangers stays.
   *
   * @param attempt its `subject` identifies the authenticator, so that a new one begins with a new
   * count
   */
  beginTotp(attempt: Attempt): Promise<() => Promise<void>>;
}

const { subject, address } = failuresMax;

/** The n-th newest failure of a window. While it exists, attempts are refused. */
const windowSql = (condition: string, { max, withinMs }: typeof subject | typeof address): string =>
  `(select extract(epoch from create_time + interval '${withinMs} ms' - now())::float8 as wait
    from sign_in_failure where ${condition} and create_time > now() - interval '${withinMs} ms'
    order by create_time desc offset ${max - 1} limit 1)`;

const sql = {
  // Locks are taken in one order, so that no deadlock can occur.
  lock: `select pg_advisory_xact_lock(hashtext('uas sign-in failure'), key)
    from (select hashtext(text) as key from unnest($1::text[]) text order by 1) keys`,
  wait: `select max(wait) as wait from (${windowSql("subject = $1", subject)}
    union all ${windowSql("ip_address = $2", address)}) w`,
  add: `insert into sign_in_failure (id, subject, ip_address) values ($1, $2, $3)`,
  forgive: `delete from sign_in_failure where id = $1`,
} as const;

/** Creates the counter. */
export function createFailures(pool: Pool): Failures {
  return {
    async begin(attempt) {
      const keys = keysOf(attempt);
      const id = newId();
      await transact(pool, async (client) => {
        await client.query(sql.lock, [keys]);
        const { rows } = await client.query<{ wait: number | null }>(sql.wait, keys);
        const wait = rows[0]?.wait ?? null;
        if (wait !== null) throw tooMany(wait);
        await client.query(sql.add, [id, ...keys]);
      });
      return async () => void (await mapDatabaseLoss(pool.query(sql.forgive, [id])));
    },

    async beginTotp(attempt) {
      const [key] = keysOf(attempt);
      const forgive = await this.begin(attempt);
      await transact(pool, (client) => countGuess(client, key));
      return async () => {
        await forgive();
        const undone =
          attempt.knownAs === undefined
            ? pool.query(guessSql.forgive, [key])
            : pool.query(guessSql.reset, [key]);
        await mapDatabaseLoss(undone);
      };
    },
  };
}

function tooMany(waitSeconds: number): GatewayError {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitSeconds));
  const text = `too many wrong attempts: try again in ${duration(retryAfterSeconds)}`;
  return new GatewayError(ErrorCode.RATE_LIMIT_EXCEEDED, text, { retryAfterSeconds });
}

/** Texts that users typed are stored as hashes only, since they may be anything. */
function keysOf({ subject: about, ipAddress, knownAs }: Attempt): [string, string] {
  if (knownAs === undefined) return [digestOf(about), addressGroup(ipAddress)];
  return [digestOf(`${about}\n${knownAs}`), digestOf(knownAs)];
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

/**
 * Wrong codes of an authenticator over its life, from browsers without an earlier sign-in of its
 * user. Three of a million codes are right at a time, so that guessing succeeds with 30 × 3e-6 =
 * 9e-5 (R-KEY-5). Known browsers and sessions have separate counts, which a right code resets.
 */
export const totpGuessesMax = 30;

/**
 * Number of wrong codes after which each further one doubles the wait for the next, from half a
 * minute to a day.
 */
export const totpFreeGuesses = 5;
const totpWaitMs = { first: 30_000, most: 24 * 60 * 60 * 1_000 };

const guessSql = {
  find: `select wrong, extract(epoch from now() - last_time)::float8 * 1000 as age_ms
    from code_guess where subject = $1`,
  add: `insert into code_guess as g (subject, wrong) values ($1, 1)
    on conflict (subject) do update set wrong = g.wrong + 1, last_time = now()`,
  forgive: `update code_guess set wrong = greatest(wrong - 1, 0) where subject = $1`,
  reset: `delete from code_guess where subject = $1`,
} as const;

/** Counts a guess before it is checked. @throws GatewayError RATE_LIMIT_EXCEEDED */
async function countGuess(client: PoolClient, key: string): Promise<void> {
  await client.query(sql.lock, [[key]]);
  const { rows } = await client.query<{ wrong: number; age_ms: number }>(guessSql.find, [key]);
  const { wrong, age_ms: ageMs } = rows[0] ?? { wrong: 0, age_ms: 0 };
  if (wrong >= totpGuessesMax) throw lockedForStrangers();
  const waitMs = wrong < totpFreeGuesses ? 0 : waitAfter(wrong - totpFreeGuesses) - ageMs;
  if (waitMs > 0) throw tooMany(waitMs / 1_000);
  await client.query(guessSql.add, [key]);
}

function waitAfter(doublings: number): number {
  return Math.min(totpWaitMs.first * 2 ** doublings, totpWaitMs.most);
}

function lockedForStrangers(): GatewayError {
  const text =
    "too many wrong authenticator codes were entered: use a browser that you have signed in with before, or ask the operator for a link of `uas console link`";
  return new GatewayError(ErrorCode.RATE_LIMIT_EXCEEDED, text, { param: "totp_code" });
}
