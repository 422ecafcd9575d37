/**
 * A run of the fuzzer: sends requests, watches the gateway, checks the ledger, and makes findings
 * small.
 */
import { auditLedger } from "../../../src/billing/audit/audit.ts";
import { createIds } from "./ids.ts";
import { judge, type Secrets } from "./judge.ts";
import { chooseMutations, mutate, type Mutation } from "./mutations.ts";
import { Chance, seedAt } from "./random.ts";
import { type Entries, findEntries } from "./samples.ts";
import { Http1Client, type Outcome } from "./send-http1.ts";
import { Http2Client } from "./send-http2.ts";
import { commandOf, type Shot } from "./shot.ts";
import type { World } from "./world.ts";

/** Memory of the gateway after a collection of its garbage, in MB. */
export interface FuzzMemory {
  readonly resident: number;
  /** Live memory of V8's heap. */
  readonly heap: number;
  /** Buffers outside it. */
  readonly external: number;
}

/** Options of {@link fuzz}. */
export interface FuzzOptions {
  readonly requests: number;
  readonly seed: number;
  /** A part of the names of the entry points to use. Default: all. */
  readonly only?: string;
  /** Stops after this time, in seconds. Default: never. */
  readonly seconds?: number;
  /** Requests at once. */
  readonly lanes: number;
  /** Called now and then with the number of requests so far. */
  readonly onProgress?: (done: number) => void;
}

/** Counts of an entry point. */
export interface EntryCounts {
  sent: number;
  ok: number;
  refused: number;
  /** Documented 503. */
  busy: number;
  /** No reply: the client left, or the request was none. */
  silent: number;
  /** Sum of the times of its requests, in milliseconds. */
  ms: number;
}

/** Findings of a run. */
export interface FuzzReport {
  readonly counts: Readonly<Record<string, EntryCounts>>;
  /** Each with its seed and a command that repeats it. Empty if nothing is wrong. */
  readonly findings: readonly string[];
  /** After the first tenth, and at the end. */
  readonly memory: { readonly warm: FuzzMemory; readonly end: FuzzMemory };
  /** The most resident memory, in MB. */
  readonly rssMost: number;
}

/** Maximum time of a request. The gateway's limits on heads, bodies and waits are shorter. */
const deadlineMs = 30_000;

/** A run ends with the first findings: what follows is often the same. */
const findingsMax = 10;

/**
 * Resident memory may never be more, in bytes, and may grow by so much after the first tenth, in
 * MB.
 */
const rssMax = 1_600e6;
const rssGrowthMax = 300;

/**
 * By how much what is alive in the heap may grow after the first tenth, in MB: 60 bytes for each of
 * a million requests.
 */
const heapGrowthMax = 60;

function megabytes(bytes: number): number {
  return Math.round(bytes / 1e6);
}

/** A request as numbers: enough to make it again, or without some of its mutations. */
interface Recipe {
  readonly entry: string;
  readonly sample: number;
  readonly mutations: readonly Mutation[];
}

/** Runs it against a world that is used by nothing else. */
export async function fuzz(world: World, options: FuzzOptions): Promise<FuzzReport> {
  const ids = await createIds(world);
  const all = await findEntries(world, ids);
  const names = Object.keys(all).filter((name) => name.includes(options.only ?? ""));
  if (names.length === 0)
    throw new Error(`--only must be a part of: ${Object.keys(all).join(", ")}`);
  const run = new Run(world, all, names, options);
  await run.sendAll();
  return run.finish();
}

class Run {
  readonly world: World;
  readonly entries: Entries;
  readonly names: readonly string[];
  readonly options: FuzzOptions;
  readonly #findings: string[] = [];
  readonly #counts: Record<string, EntryCounts> = {};
  readonly #secrets: Secrets;
  #next = 0;
  #most = 0;
  #warm: FuzzMemory = { resident: 0, heap: 0, external: 0 };
  #end: FuzzMemory = this.#warm;
  #isWarm = false;
  #baseline = 0;
  /** Of clients that the world itself keeps. */
  #connections = 0;
  #logged = 0;

  constructor(world: World, entries: Entries, names: readonly string[], options: FuzzOptions) {
    this.world = world;
    this.entries = entries;
    this.names = names;
    this.options = options;
    const { text, native } = world.vendors;
    const secrets = [...Object.values(text), ...Object.values(native)].map(({ secret }) => secret);
    this.#secrets = { canaries: [...new Set(secrets), world.operatorToken] };
    for (const name of names) {
      this.#counts[name] = { sent: 0, ok: 0, refused: 0, busy: 0, silent: 0, ms: 0 };
    }
  }

  async sendAll(): Promise<void> {
    const { requests, seconds = Infinity, lanes } = this.options;
    this.#baseline = this.world.gateway.descriptors();
    this.#connections = this.world.gateway.connections();
    const endMs = performance.now() + seconds * 1_000;
    const watch = setInterval(() => this.#watch(), 500);
    const lane = async (): Promise<void> => {
      const http1 = new Http1Client();
      const http2 = new Http2Client();
      while (this.#next < requests && performance.now() < endMs && !this.#isOver()) {
        await this.#sendNext(this.#next++, http1, http2);
      }
      http1.close();
      http2.close();
    };
    try {
      await Promise.all(Array.from({ length: lanes }, lane));
    } finally {
      clearInterval(watch);
    }
  }

  async finish(): Promise<FuzzReport> {
    const { gateway } = this.world;
    if (gateway.exit === undefined) {
      await this.#checkLedger();
      await this.#checkGauges();
      await this.#checkHandles();
      this.#checkLog();
    } else
      this.#find(`the gateway has ended: ${gateway.exit}\n${gateway.errors.slice(-5).join("\n")}`);
    return {
      counts: this.#counts,
      findings: this.#findings,
      memory: { warm: this.#warm, end: this.#end },
      rssMost: megabytes(this.#most),
    };
  }

  #isOver(): boolean {
    return this.#findings.length >= findingsMax || this.world.gateway.exit !== undefined;
  }

  async #sendNext(index: number, http1: Http1Client, http2: Http2Client): Promise<void> {
    const chance = new Chance(seedAt(this.options.seed, index));
    const entry = this.names[index % this.names.length] as string;
    const sample = chance.seed();
    const hasJson = this.#make({ entry, sample, mutations: [] }).json !== undefined;
    const recipe = { entry, sample, mutations: chooseMutations(chance, hasJson) };
    const shot = this.#make(recipe);
    const outcome = await this.#send(shot, http1, http2);
    this.#count(entry, outcome);
    const problem = judge(shot, outcome, this.#secrets);
    if (problem !== undefined) await this.#report(index, recipe, { problem, after: outcome.after });
    if (index % 2_000 === 1_999) {
      this.world.vendors.clear();
      this.options.onProgress?.(index + 1);
    }
  }

  #make({ entry, sample, mutations }: Recipe): Shot {
    const shot = (this.entries[entry] as Entries[string])(new Chance(sample));
    mutate(shot, mutations);
    return shot;
  }

  #send(shot: Shot, http1: Http1Client, http2: Http2Client): Promise<Outcome> {
    const { url, internalUrl } = this.world.gateway;
    const address = shot.listener === "public" ? url : internalUrl;
    return (shot.isHttp2 ? http2 : http1).send(address, shot, deadlineMs);
  }

  #count(entry: string, { status, headers, body, ms }: Outcome): void {
    const counts = this.#counts[entry] as EntryCounts;
    counts.sent++;
    counts.ms += ms;
    const grpc = headers["grpc-status"];
    const isRefused = status === 101 && !body.includes('"response.completed"');
    if (status === 0) counts.silent++;
    else if (isRefused) counts.refused++;
    else if (status === 503) counts.busy++;
    else if (status < 400 && (grpc === undefined || grpc === "0")) counts.ok++;
    else counts.refused++;
  }

  /** Repeats a finding alone, then with fewer mutations, as long as it stays. */
  async #report(
    index: number,
    recipe: Recipe,
    { problem, after }: { readonly problem: string; readonly after: Shot | undefined },
  ): Promise<void> {
    if (this.#isOver()) return;
    const http1 = new Http1Client();
    const http2 = new Http2Client();
    const problemOf = async (each: Recipe): Promise<string | undefined> => {
      const shot = this.#make(each);
      return judge(shot, await this.#send(shot, http1, http2), this.#secrets);
    };
    let smallest = recipe;
    const again = await problemOf(recipe);
    if (again !== undefined) {
      for (const mutation of recipe.mutations) {
        const mutations = smallest.mutations.filter((each) => each !== mutation);
        const fewer = { ...smallest, mutations };
        if ((await problemOf(fewer)) !== undefined) smallest = fewer;
      }
    }
    http1.close();
    http2.close();
    const { url, internalUrl } = this.world.gateway;
    const shot = this.#make(smallest);
    const address = shot.listener === "public" ? url : internalUrl;
    const before =
      after === undefined
        ? ""
        : `\n  on the connection of: ${commandOf(after, address).slice(0, 4_000)}`;
    const kinds = smallest.mutations.map(({ kind }) => kind).join(", ") || "none";
    this.#find(
      `${recipe.entry}: ${problem}\n  seed ${this.options.seed}, request ${index}; mutations: ${kinds}${again === undefined ? "; it did not happen again alone" : ""}\n  ${commandOf(shot, address).slice(0, 4_000)}${before}`,
    );
  }

  #find(finding: string): void {
    if (this.#findings.length < findingsMax) this.#findings.push(finding);
  }

  #watch(): void {
    const rss = this.world.gateway.rss();
    this.#most = Math.max(this.#most, rss);
    if (!this.#isWarm && this.#next > this.options.requests / 10) {
      this.#isWarm = true;
      // A gateway that ends meanwhile is found at the end.
      void this.#memory().then(
        (memory) => (this.#warm = memory),
        () => {},
      );
    }
    if (rss > rssMax) this.#find(`resident memory is ${megabytes(rss)} MB`);
    this.#checkLog();
  }

  #checkLog(): void {
    const lines = this.world.gateway.errors.slice(this.#logged);
    this.#logged += lines.length;
    for (const line of lines) {
      this.#find(
        `log, at about request ${this.#next} of seed ${this.options.seed}: ${line.slice(0, 1_500)}`,
      );
    }
  }

  /** Nothing stays held, the audit passes, and each record is what its account was charged. */
  async #checkLedger(): Promise<void> {
    const { pool } = this.world;
    for (const end = performance.now() + 60_000; ; ) {
      const { rows } = await pool.query<{ open: number }>(
        "select count(*)::int as open from open_hold",
      );
      const open = rows[0]?.open ?? 0;
      if (open === 0) break;
      if (performance.now() > end) return this.#find(`${open} holds are open after 60 s`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    for (const { rule, detail } of await auditLedger(pool))
      this.#find(`ledger: ${rule}: ${detail}`);
    const { rows } = await pool.query<{ id: string; cost: string; charged: string }>(`
      select c.id, c.cost::text as cost, coalesce(e.charged, 0)::text as charged
        from call c left join (
          select coalesce(call_id, txn_id) as id, sum(amount) as charged
            from ledger_entry where account = 2 group by 1) e on e.id = c.id
        where c.cost <> coalesce(e.charged, 0) limit 5`);
    for (const { id, cost, charged } of rows)
      this.#find(`call ${id} costs ${cost}, charged ${charged}`);
    const { rows: negative } = await pool.query<{ account_id: string }>(
      "select account_id from balance where available < 0 or held < 0 limit 5",
    );
    for (const row of negative) this.#find(`the balance of ${row.account_id} is negative`);
  }

  /** Work of clients has ended with their connections. */
  async #checkGauges(): Promise<void> {
    const { gateway } = this.world;
    for (const name of [
      "uas_calls_running",
      "uas_unfinished_body_bytes",
      "uas_websocket_connections",
    ]) {
      await this.#reachesZero(name, () => gateway.gauge(name));
    }
    await this.#reachesZero("connections of clients", () =>
      Math.max(0, gateway.connections() - this.#connections),
    );
  }

  /** Finds what is not zero within 20 s. */
  async #reachesZero(what: string, read: () => number | Promise<number>): Promise<void> {
    for (const end = performance.now() + 20_000; ; ) {
      const left = await read();
      if (left === 0) return;
      if (performance.now() > end) return this.#find(`${what}: ${left} at the end`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Files are closed, and memory does not grow. */
  async #checkHandles(): Promise<void> {
    const { gateway } = this.world;
    if (this.#baseline === 0) return;
    // Pools of vendors and of the database grow with use, and stay.
    const most = this.#baseline + 120;
    for (const end = performance.now() + 20_000; gateway.descriptors() > most; ) {
      if (performance.now() > end) {
        return this.#find(`${gateway.descriptors()} open files, ${this.#baseline} before`);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    this.#end = await this.#memory();
    const [warm, end] = [this.#warm, this.#end];
    if (warm.resident === 0) return;
    if (end.resident > warm.resident + rssGrowthMax)
      this.#find(`resident memory grew from ${warm.resident} MB to ${end.resident} MB`);
    if (end.heap > warm.heap + heapGrowthMax)
      this.#find(`the heap grew from ${warm.heap} MB to ${end.heap} MB`);
  }

  async #memory(): Promise<FuzzMemory> {
    const { rss, heapUsed, external } = await this.world.gateway.measure();
    return { resident: megabytes(rss), heap: megabytes(heapUsed), external: megabytes(external) };
  }
}
