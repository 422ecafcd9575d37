/**
 * Connects the parts of the key room: its service and the copies of keys, for any process with the
 * database. A server checks the keys of its callers with authenticate.ts.
 */
import type { Logger } from "pino";
import { KeyService } from "../../gen/uas/key/v1/key_service_pb.ts";
import type { Clock } from "../core/clock.ts";
import { type Service, serve } from "../core/contract-rules.ts";
import type { Database } from "../db/database.ts";
import { createKeyCopies } from "./copies.ts";
import { createKeyService, type KeyServiceOptions } from "./service.ts";

/** Options of {@link createKeyRoom}. */
export interface KeyOptions {
  readonly database: Database;
  readonly clock: Clock;
  /** Whether the operator stores copies of keys, so that they can be shown again. */
  readonly isCopied: () => boolean;
  /** The master key, read at its first use. */
  readonly masterKey: () => Uint8Array;
  /** Whether this is certainly the gateway's master key: see copies.ts. */
  readonly isKeySure: boolean;
  readonly log: Logger;
}

/** The service, and the work on copies at the start of a server. */
export interface KeyRoom {
  readonly service: Service;
  /** Deletes the copies if the operator has disabled them. */
  sweepCopies(): Promise<void>;
}

/**
 * Creates the key room.
 *
 * @param others functions of the account and billing rooms
 */
export function createKeyRoom(
  { database: { orm, pool }, clock, isCopied, masterKey, isKeySure, log }: KeyOptions,
  others: Pick<KeyServiceOptions, "accountExists" | "spentOf" | "budgets" | "requireStepUp">,
): KeyRoom {
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const copies = createKeyCopies({ pool, masterKey, isOn: isCopied, isKeySure, warn });
  const onReveal = (facts: object): void => log.info(facts, "a key was shown again");
  const service = createKeyService({ orm, clock, copies, onReveal, ...others });
  return { service: serve(KeyService, service, clock), sweepCopies: () => copies.sweep() };
}
