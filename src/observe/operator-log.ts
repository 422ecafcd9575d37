/** Records operator actions, in the same transaction as the action. */
import type { ContextValues } from "@connectrpc/connect";
import type { PoolClient } from "pg";
import { type Caller, callerKey, requestIdKey } from "../core/caller.ts";
import { clockKey } from "../core/clock.ts";

/** An action of an operator. */
export interface OperatorAction {
  /** Room and verb, for example `account.suspend`. */
  readonly action: string;
  /** The account concerned. None by default. */
  readonly accountId?: string | undefined;
  /** The id of the changed object. */
  readonly subject: string;
  /**
   * The changed members before the action, without secrets. Undefined if the object did not exist.
   */
  readonly before?: Facts | undefined;
  /** The changed members after the action, without secrets. */
  readonly after?: Facts | undefined;
  /** The operator's reason. Undefined if the action needs none. */
  readonly reason?: string | undefined;
}

/** Recorded values. Amounts are decimal digits, times ISO 8601. */
export type Facts = Readonly<Record<string, unknown>>;

/** An open transaction: an entity manager inside `transactional`. */
interface Transaction {
  execute(text: string, values: unknown[]): Promise<unknown>;
}

const columns = "id, actor, request_id, action, account_id, subject, before, after, reason";

const types = ["uuid", "text", "text", "text", "uuid", "text", "jsonb", "jsonb", "text"];

/**
 * Combines a single statement with the entry that records it, so that no transaction is needed.
 *
 * @param select performs the action, with a column `verdict` that is `booked` if the action took
 * effect now
 * @param values the values of {@link actionValues}, as parameters after the parameters of `select`
 */
export function withAction(
  select: string,
  {
    parameters,
    values,
  }: { readonly parameters: unknown[]; readonly values: unknown[] | undefined },
): { readonly text: string; readonly parameters: unknown[] } {
  if (values === undefined) return { text: select, parameters };
  const marks = types.map((type, index) => `$${parameters.length + index + 1}::${type}`).join(", ");
  const text =
    `with done as (${select}), recorded as (insert into audit_entry (${columns}) ` +
    `select ${marks} from done where verdict = 'booked') select * from done`;
  return { text, parameters: [...parameters, ...values] };
}

/**
 * The values of an entry, in column order; undefined if the caller is no operator, so nothing is
 * recorded.
 */
export function actionValues(
  values: Pick<ContextValues, "get">,
  { action, accountId, subject, before, after, reason = "" }: OperatorAction,
): unknown[] | undefined {
  const caller = values.get(callerKey);
  if (caller?.kind !== "operator") return undefined;
  return [
    values.get(clockKey).newId(),
    actorOf(caller),
    values.get(requestIdKey),
    action,
    accountId ?? null,
    subject,
    before === undefined ? null : JSON.stringify(before, plain),
    after === undefined ? null : JSON.stringify(after, plain),
    reason,
  ];
}

/**
 * Records an action of an operator; does nothing for other callers. Call it inside the transaction
 * of the action.
 */
export async function recordAction(
  transaction: Transaction,
  values: Pick<ContextValues, "get">,
  action: OperatorAction,
): Promise<void> {
  const written = actionValues(values, action);
  if (written === undefined) return;
  const marks = written.map(() => "?").join(", ");
  await transaction.execute(`insert into audit_entry (${columns}) values (${marks})`, written);
}

/** As {@link recordAction}, on a connection with an open transaction. */
export async function recordActionOn(
  client: Pick<PoolClient, "query">,
  values: Pick<ContextValues, "get">,
  action: OperatorAction,
): Promise<void> {
  const written = actionValues(values, action);
  if (written === undefined) return;
  const marks = written.map((_, index) => `$${index + 1}`).join(", ");
  await client.query(`insert into audit_entry (${columns}) values (${marks})`, written);
}

/** The members whose value changed, before and after. */
export function changedFacts(
  before: Facts,
  after: Facts,
): { readonly before: Facts; readonly after: Facts } {
  const names = Object.keys(after).filter(
    (name) => JSON.stringify(before[name], plain) !== JSON.stringify(after[name], plain),
  );
  const of = (facts: Facts): Facts =>
    Object.fromEntries(names.map((name) => [name, facts[name] ?? null]));
  return { before: of(before), after: of(after) };
}

/** Names an operator, for lists of actions. */
export function actorOf({ session, via }: Extract<Caller, { kind: "operator" }>): string {
  return session === undefined ? (via ?? "operator") : `user ${session.userId}`;
}

function plain(_name: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}
