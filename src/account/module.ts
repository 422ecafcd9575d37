/** Assembles sign-in: users, sessions, codes and SMS. */
import type { Logger } from "pino";
import { SignInMethodSchema } from "../../gen/uas/account/v1/session_pb.ts";
import { SessionService } from "../../gen/uas/account/v1/session_service_pb.ts";
import { UserService } from "../../gen/uas/account/v1/user_service_pb.ts";
import { type CodeObserver, createCodes } from "./code/codes.ts";
import type { SignInRoom } from "./room.ts";
import type { Accounts } from "./service.ts";
import { createFailures } from "./session/failures.ts";
import { createKnownBrowsers } from "./session/known-browsers.ts";
import { createSessionService } from "./session/service.ts";
import { createStepUp } from "./session/step-up.ts";
import { createSessions } from "./session/store.ts";
import { createLiveSms } from "./sms/sms.ts";
import { createLinks } from "./user/links.ts";
import { createTotpCheck, totpPurpose } from "./user/proof.ts";
import { createUserService } from "./user/service.ts";
import { createUsers } from "./user/store.ts";
import type { Caller } from "../core/caller.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/database.ts";
import type { Clock } from "../core/clock.ts";
import type { Metrics } from "../observe/metrics.ts";
import { type Service, serve } from "../core/contract-rules.ts";
import { createSealing, type Sealing } from "../core/sealing.ts";
import type { RequireStepUp } from "../core/browser-session.ts";
import { type AccountJobs, createAccountJobs } from "./jobs.ts";

/** Observes sign-ins, for metrics. */
export interface SignInObserver extends CodeObserver {
  onSignIn(method: string): void;
}

/** Options of {@link createSignIn}. */
export interface SignInOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly config: Config;
  readonly accounts: Accounts;
  /** Returns the master key; called on first use. */
  readonly masterKey: () => Uint8Array;
  readonly log: Logger;
  readonly observer: SignInObserver;
  /** Deletes the copies of keys if the operator has disabled them. */
  readonly sweepCopies: () => Promise<void>;
}

/** The assembled sign-in. */
export interface SignIn {
  readonly services: readonly Service[];
  /** Identifies the owner of a session cookie's token. */
  readonly identify: (token: string) => Promise<Caller>;
  readonly requireStepUp: RequireStepUp;
  /** Whether an operator with a password exists, who needs no sign-in link. */
  readonly hasOperator: () => Promise<boolean>;
  readonly jobs: AccountJobs;
  close(): Promise<void>;
}

/** Assembles sign-in. */
export function createSignIn(options: SignInOptions): SignIn {
  const { database, clock, config, accounts, masterKey, log, observer } = options;
  const { orm, pool, jobPool } = database;
  const alarm = (message: string, fields: object): void => log.error(fields, message);
  const sms = createLiveSms(config, (message) => log.info(message));
  const users = createUsers(orm, clock.newId);
  const sessions = createSessions(database, clock.newId);
  const failures = createFailures(pool);
  const sealing = keepingSealing(masterKey);
  const room: SignInRoom = {
    users,
    sessions,
    failures,
    known: createKnownBrowsers(masterKey, clock),
    sealing,
    links: createLinks(orm),
    codes: createCodes({
      pool,
      masterKey,
      sms,
      dailyMax: () => config.sms?.dailyMax ?? 0,
      observer,
      alarm,
    }),
    checkTotp: createTotpCheck({ users, failures, sealing, clock }),
    accountOf: accounts.messageOf,
    rules: {
      get hasCodes() {
        return config.sms !== undefined;
      },
      get isDevelopment() {
        return sms.isDevelopment;
      },
      get countries() {
        return config.sms?.countries ?? [];
      },
      get hasSignUp() {
        return config.console.signUp;
      },
      get canRevealKeys() {
        return config.console.copyAgain;
      },
    },
    onSignIn(method, userId, ipAddress) {
      const word = SignInMethodSchema.value[method]?.localName.toLowerCase() ?? "";
      observer.onSignIn(word);
      log.info({ userId, ipAddress, method: word }, "signed in to the console");
    },
  };
  const requireStepUp = createStepUp(room);
  const userService = createUserService({ room, requireStepUp, accountExists: accounts.exists });
  return {
    services: [serve(SessionService, createSessionService(room)), serve(UserService, userService)],
    identify: (token) => sessions.identify(token),
    requireStepUp,
    hasOperator: async () => (await users.firstOperator())?.passwordHash != null,
    jobs: createAccountJobs({
      pool: jobPool,
      warn: (message, fields) => log.warn(fields, message),
      also: options.sweepCopies,
    }),
    close: () => sms.close(),
  };
}

/** Counts sign-ins and codes. */
export function createSignInObserver(metrics: Metrics): SignInObserver {
  return {
    onSend: (outcome) => metrics.codesSent.inc({ outcome }),
    onCheck: (outcome) => metrics.codeChecks.inc({ outcome }),
    onSignIn: (method) => metrics.signIns.inc({ method }),
  };
}

/** Encrypts the secrets of authenticators; created on first use. */
function keepingSealing(masterKey: () => Uint8Array): () => Sealing {
  let kept: Sealing | undefined;
  return () => (kept ??= createSealing(masterKey(), totpPurpose));
}
