/** One account of the ledger as a few maps: what the real one must do, in a hundred lines. */

/** An operation of a call. Calls are named by small numbers. */
export type Op =
  | { readonly kind: "hold"; readonly slot: number; readonly nanos: bigint; readonly key: KeyName }
  | {
      readonly kind: "extend";
      readonly slot: number;
      readonly nanos: bigint;
      /** Cost of the call if it ended now; undefined if unknown. */
      readonly checkpoint: bigint | undefined;
    }
  | { readonly kind: "settle"; readonly slot: number; readonly nanos: bigint };

/** The keys of an account: none, one with a limit, one without. */
export type KeyName = "none" | "limited" | "free";

/** Spend limit of the limited key. */
export const keyLimit = 80n;

/** Returns the vendor's cost of a call that costs `nanos`. */
export function vendorCost(nanos: bigint): bigint {
  return nanos / 2n;
}

interface ModelHold {
  amount: bigint;
  state: "open" | "ended" | "swept";
  readonly key: KeyName;
  readonly node: string;
  steps: number;
  checkpoint: bigint | undefined;
  isExpired: boolean;
  cost: bigint;
  paid: bigint;
  vendor: bigint;
  refunded: bigint;
}

/** Order of IDs: settlements of a batch use the same money in this order. */
type Compare = (a: number, b: number) => number;

/** One account. */
export class ModelAccount {
  available = 0n;
  held = 0n;
  readonly holds = new Map<number, ModelHold>();
  readonly keys = { none: nothing(), limited: nothing(), free: nothing() };
  readonly deadNodes = new Set<string>();
  readonly bookings = new Map<string, string>();

  /** Applies a batch: settlements, extensions, holds. Returns their results in order. */
  apply(ops: readonly Op[], node: string, byId: Compare): string[] {
    const settles = ops.filter((op) => op.kind === "settle");
    this.#settle(new Map(settles.map((op) => [op.slot, op.nanos])), byId);
    const told = new Map<Op, string>(settles.map((op) => [op, "settled"]));
    for (const op of ops) if (op.kind === "extend") told.set(op, this.#extend(op));
    for (const op of ops) if (op.kind === "hold") told.set(op, this.#hold(op, node));
    return ops.map((op) => told.get(op) ?? "");
  }

  /** Ends what has expired or belongs to a dead process. */
  sweep(byId: Compare): void {
    const gone = [...this.holds].filter(
      ([, hold]) => hold.state === "open" && (hold.isExpired || this.deadNodes.has(hold.node)),
    );
    const costs = new Map(gone.map(([slot, hold]) => [slot, hold.checkpoint ?? 0n]));
    this.#settle(costs, byId);
    for (const [, hold] of gone) hold.state = "swept";
  }

  /** Returns whether it was booked or replayed; undefined means refused. */
  book(reference: string, amount: bigint, slot?: number): "booked" | "replayed" | undefined {
    const content = `${amount} ${slot ?? ""}`;
    const old = this.bookings.get(reference);
    if (old !== undefined) return old === content ? "replayed" : undefined;
    const hold = slot === undefined ? undefined : this.holds.get(slot);
    if (slot !== undefined) {
      if (!hold || hold.paid === 0n || hold.paid - hold.refunded < amount) return undefined;
      hold.refunded += amount;
    }
    this.bookings.set(reference, content);
    this.available += amount;
    return "booked";
  }

  /** A copy, to try another order of events. */
  clone(): ModelAccount {
    const { available, held, holds, keys, deadNodes, bookings } = this;
    const copied = structuredClone({ available, held, holds, keys, deadNodes, bookings });
    return Object.assign(new ModelAccount(), copied);
  }

  #settle(costs: ReadonlyMap<number, bigint>, byId: Compare): void {
    const inOrder = [...costs].toSorted(([a], [b]) => byId(a, b));
    const late = inOrder.filter(([slot]) => this.holds.get(slot)?.state === "swept");
    const open = inOrder.filter(([slot]) => this.holds.get(slot)?.state === "open");
    for (const [slot, cost] of open) this.#end(slot, cost);
    // The part above the call's own hold is paid from the released holds.
    for (const [slot, cost] of open) this.#pay(slot, cost);
    for (const [slot, cost] of late) this.#correct(slot, cost);
    for (const [slot] of inOrder) if (!this.holds.has(slot)) this.holds.set(slot, tomb());
  }

  #end(slot: number, cost: bigint): void {
    const hold = this.#known(slot);
    this.keys[hold.key].spent += cost;
    this.keys[hold.key].held -= hold.amount;
    this.held -= hold.amount;
    hold.paid = min(cost, hold.amount);
    this.available += hold.amount - hold.paid;
    Object.assign(hold, { cost, state: "ended", vendor: vendorCost(cost) });
  }

  #pay(slot: number, cost: bigint): void {
    const hold = this.#known(slot);
    const more = min(cost - hold.paid, this.available);
    hold.paid += more;
    this.available -= more;
  }

  #correct(slot: number, cost: bigint): void {
    const hold = this.#known(slot);
    const least = min(hold.paid, hold.refunded);
    const most = min(cost, hold.paid + this.available);
    const pays = most > least ? most : least;
    this.available += hold.paid - pays;
    this.keys[hold.key].spent += cost - hold.cost;
    Object.assign(hold, { cost, paid: pays, state: "ended", vendor: vendorCost(cost) });
  }

  #extend({ slot, nanos, checkpoint }: Op & { kind: "extend" }): string {
    const hold = this.holds.get(slot);
    if (hold?.state !== "open") return "closed";
    const wanted = nanos > hold.amount ? nanos - hold.amount : 0n;
    const growth = min(wanted, this.available, this.#keyRemaining(hold.key));
    if (growth > 0n) hold.steps++;
    hold.amount += growth;
    this.#reserve(hold.key, growth);
    if (checkpoint !== undefined) hold.checkpoint = checkpoint;
    return `held ${hold.amount}`;
  }

  #hold({ slot, nanos, key }: Op & { kind: "hold" }, node: string): string {
    const old = this.holds.get(slot);
    if (old) return old.state === "open" ? "admitted" : "closed";
    if (nanos > this.available) return `refused ${this.available}`;
    const remaining = this.#keyRemaining(key);
    if (nanos > remaining) return `refused ${this.available}, key ${remaining}`;
    this.#reserve(key, nanos);
    this.holds.set(slot, { ...tomb(), amount: nanos, state: "open", key, node });
    return "admitted";
  }

  #reserve(key: KeyName, nanos: bigint): void {
    this.available -= nanos;
    this.held += nanos;
    this.keys[key].held += nanos;
  }

  #keyRemaining(key: KeyName): bigint {
    if (key !== "limited") return 1n << 60n;
    const { spent, held } = this.keys[key];
    return spent + held > keyLimit ? 0n : keyLimit - spent - held;
  }

  #known(slot: number): ModelHold {
    const hold = this.holds.get(slot);
    if (!hold) throw new Error(`no hold ${slot}`);
    return hold;
  }
}

function nothing(): { spent: bigint; held: bigint } {
  return { spent: 0n, held: 0n };
}

/** Returns the row that a settlement of an unknown hold leaves. */
function tomb(): ModelHold {
  const zero = { amount: 0n, cost: 0n, paid: 0n, vendor: 0n, refunded: 0n, steps: 0 };
  return {
    ...zero,
    state: "ended",
    key: "none",
    node: "",
    checkpoint: undefined,
    isExpired: false,
  };
}

function min(...values: readonly bigint[]): bigint {
  return values.reduce((least, value) => (value < least ? value : least));
}
