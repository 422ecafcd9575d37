/** The parameters of `ledger_apply` that bring call records. */

interface CallColumn {
  readonly name: string;
  readonly type: string;
}

/** What nearly every call has a value of its own for: an array each, null where all are 0 or empty. */
const own: readonly CallColumn[] = [
  { name: "input_tokens", type: "integer" },
  { name: "cached_input_tokens", type: "integer" },
  { name: "cache_write_tokens", type: "integer" },
  { name: "output_tokens", type: "integer" },
  { name: "reasoning_tokens", type: "integer" },
  { name: "held", type: "bigint" },
  { name: "duration_ms", type: "integer" },
  { name: "first_byte_ms", type: "integer" },
  { name: "start_time", type: "timestamptz" },
];

/** The same, of texts. */
const ownTexts = ["request_id", "upstream_request_id"];

/** What many calls of a batch have in common. */
const shared = [
  "key_id",
  "model",
  "vendor",
  "path",
  "stream",
  "status",
  "error_code",
  "ending",
  "usage_source",
  "price_version",
  "dropped",
  "discount_bp",
  "charged",
  "images",
  "second_micros",
  "attempts",
];

/** The parameters as declared. */
export const callParameters: string = [
  "p_kinds json",
  "p_kind integer[]",
  ...ownTexts.map((name) => `p_${name} text[]`),
  ...own.map(({ name, type }) => `p_${name} ${type}[]`),
].join(", ");

/** The columns of {@link callRows}. */
export const callNames: string = [
  "id, account_id, cost, vendor_cost",
  ...ownTexts,
  ...own.map(({ name }) => name),
  ...shared,
].join(", ");

/**
 * The records as rows. p_kinds: rows of `call` with what several calls have in common; p_kind: which of them each
 * settlement's record is, counted from 1; 0: the settlement has no record; null: all are the first.
 *
 * Numbers are read by their place in the array, texts by `unnest`: an array of texts has to be walked to find a
 * member. `unnest` stands among what is selected: in `from` each would fill a tuplestore of its own.
 */
export const callRows = `
  select p_settle_ids[s.n] as id, p_account as account_id, p_settle_costs[s.n] as cost, p_vendor_costs[s.n] as vendor_cost,
      ${ownTexts.map((name) => `s.${name}`).join(", ")},
      ${own.map(({ name, type }) => (type === "integer" ? `coalesce(p_${name}[s.n], 0) as ${name}` : `p_${name}[s.n] as ${name}`)).join(", ")},
      ${shared.map((name) => `c.${name}`).join(", ")}
    from (select generate_subscripts(p_settle_ids, 1) as n,
        ${ownTexts.map((name) => `unnest(p_${name}) as ${name}`).join(", ")}) s
      join rows from (json_populate_recordset(null::call, p_kinds)) with ordinality c
        on c.ordinality = coalesce(p_kind[s.n], 1)`;
