/**
 * Types of the rows that prepared SQL reads, derived from the entities: no second description of a
 * table.
 */
import type { EntitySchema, InferEntity, Opt } from "@mikro-orm/core";

/** `accountId` becomes `account_id`. Digits are no capitals: `sha256` stays. */
type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name;

/** The driver's value for a property; optional properties of the ORM may be absent. */
type ColumnValue<Value> = Value extends bigint
  ? string
  : Value extends Uint8Array
    ? Buffer
    : Value extends undefined
      ? never
      : Value extends Opt<infer Plain>
        ? Plain
        : Value;

/** Every column of an entity's table. */
type Columns<Entity> = {
  readonly [Key in keyof Entity & string as SnakeCase<Key>]: ColumnValue<Entity[Key]>;
};

/**
 * Columns of an entity's table, all or some, as the driver returns them: by the names of the table,
 * times as `Date`, `bytea` as `Buffer`, `bigint` as decimal digits. Add computed columns, and
 * numbers that are an enum of the contract, by an intersection.
 *
 * @example RowOf<typeof HoldEntity, "id" | "amount"> & { readonly is_late: boolean }
 */
export type RowOf<
  Schema extends EntitySchema,
  Column extends keyof Columns<InferEntity<Schema>> = keyof Columns<InferEntity<Schema>>,
> = Pick<Columns<InferEntity<Schema>>, Column>;
