/**
 * Sends, checks and consumes one-time codes (R-KEY-3). SQL: both count rows under advisory locks.
 *
 * A code is valid for one purpose, subject, phone number and browser.
 */
import { createHash, createHmac, hkdfSync, randomInt, timingSafeEqual } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import {
  codeChecksMax,
  codeDigits,
  codeGuessesMax,
  codeLifeGuessesMax,
  codeMs,
} from "../../core/limits.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { newId } from "../../core/uuid.ts";
import { transact } from "../../db/pool/transaction.ts";
import type { Sms, SmsMessage } from "../sms/provider.ts";
import {
  addressGroup,
  reachedLimit,
  tooManyCodes,
  CodePurpose,
  purposeOf,
  type LimitScope,
} from "./limits.ts";

/** Everything that a code is bound to. */
interface CodeBinding {
  /** The purpose of the code, as in limits.ts. */
  readonly purpose: number;
  /** The object concerned; empty if the purpose has none. */
  readonly subject: string;
  /** In E.164 form. */
  readonly phone: string;
  /** The session, or the browser that is signing in. */
  readonly binding: string;
}

/** A request to send a code. */
export interface CodeRequest extends CodeBinding {
  /** The calling code of the number's country. */
  readonly country: string;
  readonly ipAddress: string;
  readonly accountId: string | undefined;
  readonly language: "en" | "zh";
  /**
   * Whether it is for a session, or a browser that has signed in with this number before. Codes for
   * strangers, for known browsers and for sessions count apart.
   */
  readonly isKnown: boolean;
  /**
   * If false, nothing is sent and no code will match, but everything looks and counts as if one had
   * been sent.
   */
  readonly isWanted: boolean;
  /** Whether to wait for the SMS provider, and to fail if it fails. */
  readonly isAwaited: boolean;
}

/** A code that was sent. */
export interface SentFacts {
  readonly expireTime: Date;
  /** The code, if it is shown instead of sent. */
  readonly shown: string | undefined;
}

/** Observes codes, for metrics. */
export interface CodeObserver {
  /** Outcome of sending: `sent`, `failed`, or the limit that refused it. */
  onSend(outcome: "sent" | "failed" | "limited" | "capped"): void;
  onCheck(outcome: "right" | "wrong" | "expired" | "blocked"): void;
}

/** A matching code. */
interface RightCode {
  /**
   * Consumes it.
   *
   * @throws GatewayError INVALID_REQUEST if it has been consumed meanwhile
   */
  use(): Promise<void>;
}

/** Sends and checks codes. */
export interface Codes {
  /** @throws GatewayError RATE_LIMIT_EXCEEDED, SERVICE_UNAVAILABLE */
  send(request: CodeRequest): Promise<SentFacts>;
  /**
   * Compares a code with the newest one sent for the binding.
   *
   * @param param the request member that carries the code. Default `code`
   * @throws GatewayError INVALID_REQUEST
   */
  check(binding: CodeBinding, code: string, param?: string): Promise<RightCode>;
}

/** Options of {@link createCodes}. */
interface CodesOptions {
  readonly pool: Pool;
  /** Returns the 32-byte master key; called on first use. */
  readonly masterKey: () => Uint8Array;
  readonly sms: Sms;
  /** Most codes per day, over all recipients. */
  readonly dailyMax: () => number;
  readonly observer: CodeObserver;
  /** Logs problems that the operator must fix. */
  readonly alarm: (message: string, fields: object) => void;
}

const sql = {
  // One lock for all sends, so that each sees the sends before it.
  lockSends: `select pg_advisory_xact_lock(hashtext('uas one-time code'))`,
  lockPhone: `select pg_advisory_xact_lock(hashtext('uas one-time code'), hashtext($1))`,
  add: `insert into one_time_code
      (id, purpose, subject, binding, phone, country, ip_address, account_id, mac, is_known, expire_time)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now() + interval '${codeMs} ms')
    returning expire_time`,
  newest: `select id, mac, wrong, use_time is null and expire_time > now() as is_live,
      is_known and purpose <> ${CodePurpose.SET_PHONE} as is_owner,
      (select wrong from code_guess where subject = $5) as life_guesses,
      (select coalesce(sum(wrong), 0)::int from one_time_code
        where phone = $3 and binding = $4 and create_time > now() - interval '1 day') as guesses
    from one_time_code where purpose = $1 and subject = $2 and phone = $3 and binding = $4
    order by create_time desc limit 1`,
  wrong: `update one_time_code set wrong = wrong + 1 where id = $1`,
  lifeWrong: `insert into code_guess as g (subject, wrong) values ($1, 1)
    on conflict (subject) do update set wrong = g.wrong + 1, last_time = now()`,
  life: `select from code_guess where subject = $1 and wrong >= ${codeLifeGuessesMax}`,
  use: `update one_time_code set use_time = now() where id = $1 and use_time is null`,
} as const;

interface NewestRow {
  readonly id: string;
  readonly mac: Buffer | null;
  readonly wrong: number;
  readonly is_live: boolean;
  /** Whether it is for a browser or session of the number's owner. */
  readonly is_owner: boolean;
  /** Wrong codes of strangers over the life of the number; null if there were none. */
  readonly life_guesses: number | null;
  readonly guesses: number;
}

/** Creates the code service. */
export function createCodes(options: CodesOptions): Codes {
  const { pool, sms, observer } = options;
  const macOf = createMac(options.masterKey);
  const admitting = { ...options, onReached: createCappedAlarm(options) };
  return {
    async send(request) {
      const code = String(randomInt(10 ** codeDigits)).padStart(codeDigits, "0");
      const expireTime = await transact(pool, (client) =>
        admit(client, request, admitting, (id) => macOf(id, request, code)),
      );
      const facts = { expireTime, shown: sms.isDevelopment ? code : undefined };
      if (!request.isWanted) return facts;
      const { phone: to, language, purpose } = request;
      const message = { to, code, language, text: codeText(purpose, code, language) };
      const delivery = deliver(message, options);
      // Failures have been logged for the operator.
      if (request.isAwaited) await delivery;
      else delivery.catch(() => {});
      return facts;
    },

    async check(binding, code, param = "code") {
      const { purpose, subject, phone } = binding;
      const outcome = await transact(pool, async (client) => {
        await client.query(sql.lockPhone, [phone]);
        const life = lifeSubject(phone);
        const values = [purpose, subject, phone, binding.binding, life];
        const { rows } = await client.query<NewestRow>(sql.newest, values);
        const [row] = rows;
        const verdict = classifyCode(row, (id) => macOf(id, binding, code));
        if (verdict.kind === "wrong") {
          await client.query(sql.wrong, [verdict.id]);
          if (row?.is_owner === false) await client.query(sql.lifeWrong, [life]);
        }
        return verdict;
      });
      observer.onCheck(outcome.kind === "locked" ? "blocked" : outcome.kind);
      if (outcome.kind !== "right") throw badCode(outcome.kind, param);
      return {
        async use() {
          const { rowCount } = await mapDatabaseLoss(pool.query(sql.use, [outcome.id]));
          if (rowCount !== 1) throw badCode("expired", param);
          sms.confirmed(phone);
        },
      };
    },
  };
}

/** The result of a check. */
type CodeVerdict =
  | { readonly kind: "right" | "wrong"; readonly id: string }
  | { readonly kind: "expired" | "blocked" | "locked" };

/**
 * Checks a code against the newest row of its binding. The number of checks per code, and of wrong
 * codes per number, browser and day, is limited. A change of browser needs another code; its number
 * is limited, too.
 *
 * @param macFor the keyed hash that the row has if the code is right
 */
function classifyCode(row: NewestRow | undefined, macFor: (id: string) => Buffer): CodeVerdict {
  if (row === undefined || !row.is_live || row.wrong >= codeChecksMax) return { kind: "expired" };
  if (row.guesses >= codeGuessesMax) return { kind: "blocked" };
  if (!row.is_owner && (row.life_guesses ?? 0) >= codeLifeGuessesMax) return { kind: "locked" };
  const isRight = row.mac !== null && timingSafeEqual(row.mac, macFor(row.id));
  return { kind: isRight ? "right" : "wrong", id: row.id };
}

const refusals = {
  wrong: "the code is wrong: check it, or request another one",
  expired: "the code has expired or was tried too often: request another one",
  blocked: "too many wrong codes were entered in this browser: try again in a day",
  locked:
    "too many wrong codes were entered for this number: use a browser that you have signed in with before, or ask the operator for a link of `uas console link`",
} as const;

function badCode(kind: keyof typeof refusals, param: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, refusals[kind], { param });
}

/** A keyed hash of the code and its binding, so that the table alone does not reveal the code. */
function createMac(
  masterKey: () => Uint8Array,
): (id: string, binding: CodeBinding, code: string) => Buffer {
  let kept: Buffer | undefined;
  const key = (): Buffer =>
    (kept ??= Buffer.from(hkdfSync("sha256", masterKey(), "", "uas one-time code", 32)));
  return (id, { purpose, subject, phone, binding }, code) =>
    createHmac("sha256", key())
      .update(JSON.stringify([id, purpose, subject, phone, binding, code]))
      .digest();
}

interface AdmitOptions extends Pick<CodesOptions, "dailyMax" | "observer"> {
  readonly onReached: (limit: { readonly scope: LimitScope; readonly country: string }) => boolean;
}

/**
 * Interval between warnings about a limit for all users: the party that reaches it continues to
 * request codes.
 */
const alarmEveryMs = 60_000;

/** Log texts about limits that also affect innocent users: reaching them suggests SMS fraud. */
const cappedTexts: Readonly<Partial<Record<LimitScope, string>>> = {
  all: "no more codes are sent: sms.daily_max is reached; if the users are real, raise it",
  strangers:
    "only known browsers and sessions get codes: the part of sms.daily_max for others is used up; if the users are real, raise it",
  country:
    "only known browsers and sessions get codes for this country: its hourly limit is reached; if it should have no users, remove it from sms.countries",
};

/** Warns of a limit, but not each time. Returns whether it affects all users. */
function createCappedAlarm({ alarm, dailyMax }: CodesOptions): AdmitOptions["onReached"] {
  const warnedMs = new Map<LimitScope, number>();
  return ({ scope, ...facts }) => {
    const text = cappedTexts[scope];
    if (text === undefined) return false;
    const nowMs = performance.now();
    if (nowMs - (warnedMs.get(scope) ?? -Infinity) >= alarmEveryMs) {
      warnedMs.set(scope, nowMs);
      alarm(text, { scope, ...facts, dailyMax: dailyMax() });
    }
    return true;
  };
}

/** Records a send if the limits allow it. Returns the expiry of the code. */
async function admit(
  client: PoolClient,
  request: CodeRequest,
  { dailyMax, observer, onReached }: AdmitOptions,
  macFor: (id: string) => Buffer,
): Promise<Date> {
  const { purpose, subject, binding, phone, country, accountId } = request;
  await client.query(sql.lockSends);
  if (!request.isKnown || purpose === CodePurpose.SET_PHONE) {
    const { rowCount } = await client.query(sql.life, [lifeSubject(phone)]);
    if (rowCount === 1) {
      observer.onSend("limited");
      throw new GatewayError(ErrorCode.RATE_LIMIT_EXCEEDED, refusals.locked, { param: "phone" });
    }
  }
  const reached = await reachedLimit(client, request, dailyMax());
  if (reached !== undefined) {
    observer.onSend(onReached({ ...reached, country }) ? "capped" : "limited");
    throw tooManyCodes(reached);
  }
  const id = newId();
  const mac = request.isWanted ? macFor(id) : null;
  const where = [phone, country, addressGroup(request.ipAddress), accountId ?? null];
  const { rows } = await client.query<{ expire_time: Date }>(sql.add, [
    id,
    purpose,
    subject,
    binding,
    ...where,
    mac,
    request.isKnown,
  ]);
  if (rows[0] === undefined) throw new Error("unreachable");
  return rows[0].expire_time;
}

/**
 * The subject under which wrong codes for a number are counted over its life. Codes from its
 * owner's browsers and sessions do not count.
 */
function lifeSubject(phone: string): string {
  return createHash("sha256").update(`phone\n${phone}`).digest("base64url");
}

async function deliver(message: SmsMessage, { sms, observer, alarm }: CodesOptions): Promise<void> {
  try {
    await sms.send(message);
  } catch (cause) {
    observer.onSend("failed");
    alarm("the SMS provider did not accept the code", { err: cause });
    const text = "the code could not be sent: try again in a minute";
    throw new GatewayError(ErrorCode.SERVICE_UNAVAILABLE, text, { retryAfterSeconds: 60, cause });
  }
  observer.onSend("sent");
}

interface Words {
  readonly en: string;
  readonly zh: string;
}

/** The purpose of a code, as its message states it. */
const purposes: ReadonlyMap<number, Words> = new Map([
  [CodePurpose.SIGN_IN, { en: "sign in", zh: "登录" }],
  [CodePurpose.SET_PHONE, { en: "use this number", zh: "绑定手机号" }],
  [purposeOf(CodeAction.REVEAL_KEY), { en: "show an API key", zh: "查看 API 密钥" }],
  [
    purposeOf(CodeAction.REVEAL_WEBHOOK_SECRET),
    { en: "show the webhook secret", zh: "查看 Webhook 密钥" },
  ],
  [
    purposeOf(CodeAction.ROTATE_WEBHOOK_SECRET),
    { en: "replace the webhook secret", zh: "更换 Webhook 密钥" },
  ],
  [purposeOf(CodeAction.SET_PASSWORD), { en: "change your password", zh: "修改密码" }],
  [purposeOf(CodeAction.CHANGE_PHONE), { en: "change your number", zh: "更换手机号" }],
]);

const minutes = codeMs / 60_000;

/**
 * The text message. It states the purpose, so that users do not reveal the code for another one.
 */
export function codeText(purpose: number, code: string, language: "en" | "zh"): string {
  const what = purposes.get(purpose)?.[language] ?? "";
  return language === "zh"
    ? `验证码 ${code}，用于${what}，${minutes} 分钟内有效。请勿告诉他人。`
    : `${code} is your code to ${what}. It is valid for ${minutes} minutes. Do not share it.`;
}
