/** Writes down what operators do, in the transaction in which they do it. */
import type { ContextValues } from "@connectrpc/connect";
import type { PoolClient } from "pg";
import { type Caller, callerKey, requestIdKey } from "./caller.ts";
import { newId } from "./uuid.ts";

/** Something that an operator does. */
export interface OperatorAction {
  /** What: the room and the verb, for example `account.suspend`. */
  readonly action: string;
  /** The account that it is about. Default: none. */
  readonly accountId?: string | undefined;
  /** What it is done to: an id. */
  readonly subject: string;
  /** What it changes, as it was before. Without secrets. Default: nothing was there. */
  readonly before?: Facts | undefined;
  /** What it changes, as it is after. Without secrets. */
  readonly after?: Facts | undefined;
  /** Why. Default: the action asks for no reason. */
  readonly reason?: string | undefined;
}

/** Values that are written down; amounts as decimal digits, times in ISO 8601. */
export type Facts = Readonly<Record<string, unknown>>;

/** A transaction that is open: an entity manager inside `transactional`. */
interface Transaction {
  execute(text: string, values: unknown[]): Promise<unknown>;
}

const columns = "id, actor, request_id, action, account_id, subject, before, after, reason";

const types = ["uuid", "text", "text", "text", "uuid", "text", "jsonb", "jsonb", "text"];

/**
 * A statement that does something, with the entry that tells of it: for what is one statement and no transaction.
 *
 * @param select what does it, with a column `verdict` that is `booked` where it was done now
 * @param values the values of {@link actionValues}, as parameters after those of `select`
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
    `with done as (${select}), told as (insert into audit_entry (${columns}) ` +
    `select ${marks} from done where verdict = 'booked') select * from done`;
  return { text, parameters: [...parameters, ...values] };
}

/** The values of an entry in the order of its columns; `undefined`: no operator does it, so nothing is written. */
export function actionValues(
  values: Pick<ContextValues, "get">,
  { action, accountId, subject, before, after, reason = "" }: OperatorAction,
): unknown[] | undefined {
  const caller = values.get(callerKey);
  if (caller?.kind !== "operator") return undefined;
  return [
    newId(),
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

/** Writes an entry where an operator does it. Call it inside the transaction of the action. */
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

/** The same on a connection that is inside a transaction. */
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

/** What has another value after than before: of both. */
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

function actorOf({ session, via }: Extract<Caller, { kind: "operator" }>): string {
  return session === undefined ? (via ?? "operator") : `user ${session.userId}`;
}

function plain(_name: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}
