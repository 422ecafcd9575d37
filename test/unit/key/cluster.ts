/**
 * Nodes of a cluster, each an authenticator with separate connections, over the rooms of one
 * database.
 */
import type { Pool } from "pg";
import { expect } from "vitest";
import type { Caller } from "../../../src/core/caller.ts";
import { openPool } from "../../../src/db/pool/open-pool.ts";
import { createAuthenticator } from "../../../src/key/authenticate.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { changeKnownMs } from "../../support/patience.ts";
import { openRooms, type Owner } from "./rooms.ts";

/** Options of a node. */
export interface NodeOptions {
  /** Where the change feed connects. Default: the database itself. */
  readonly feedUrl?: string;
  /** Where look-ups connect. Default: the database itself. */
  readonly poolUrl?: string;
  /** Default: the real one. */
  readonly clock?: () => number;
  /** Changes the pool. */
  readonly wrap?: (pool: Pool) => Pool;
}

/** A node. */
export type Node = ReturnType<typeof createNode>;

/** The rooms, an owner of a key, and what makes nodes; until closed. */
export type Cluster = Awaited<ReturnType<typeof openCluster>>;

/**
 * A clock that stands still: no pause of this process, however long, makes a node doubt its feed.
 */
export const stopped = (): number => 0;

/** Opens a fresh database. */
export async function openCluster() {
  const rooms = await openRooms();
  const owner = await rooms.owner();
  const closers: (() => Promise<unknown>)[] = [() => rooms.close()];
  const create = (options: NodeOptions = {}): Node => createNode(rooms.url, options, closers);
  return {
    rooms,
    owner,
    /** Makes a node that is not started. */
    create,
    /** Makes a node that follows changes. */
    async start(options?: NodeOptions): Promise<Node> {
      const node = create(options);
      await node.start();
      expect(node.stats().isCurrent).toBe(true);
      return node;
    },
    async proxy(): Promise<FaultProxy> {
      const proxy = await startFaultProxy(rooms.url);
      closers.push(() => proxy.close());
      return proxy;
    },
    async close(): Promise<void> {
      for (const close of closers.toReversed()) await close();
    },
  };
}

function createNode(url: string, options: NodeOptions, closers: (() => Promise<unknown>)[]) {
  const { feedUrl, poolUrl, clock, wrap = (pool) => pool } = options;
  const pool = openPool(poolUrl ?? url, { max: 8, for: "callers" });
  const refusals: string[] = [];
  const lines: string[] = [];
  const authenticator = createAuthenticator({
    pool: wrap(pool),
    url: feedUrl ?? url,
    warn: (message, fields) => lines.push(JSON.stringify({ message, ...fields })),
    onRefused: (reason) => refusals.push(reason),
    ...(clock && { clock }),
  });
  closers.push(async () => {
    await authenticator.close();
    await pool.end();
  });
  const { authenticate } = authenticator;
  return {
    ...authenticator,
    /** Returns the caller; undefined for an invalid key, recognised or not. */
    async authenticate(secret: string): Promise<Caller | undefined> {
      const found = await authenticate(secret);
      return found?.kind === "refused" ? undefined : found;
    },
    /** Like the edges. */
    identify: authenticate,
    refusals,
    lines,
  };
}

/** Waits until a condition holds, at most the second that R-AUTH-3 grants. */
export function within1s(condition: () => unknown) {
  return expect.poll(condition, { interval: 5, timeout: changeKnownMs });
}

/** Waits until a condition holds that no rule gives a time for. */
export function soon(condition: () => unknown) {
  return expect.poll(condition, { interval: 5, timeout: 30_000 });
}

/** Asks until the node answers from memory. */
export async function remember(node: Node, { secret }: Pick<Owner, "secret">): Promise<void> {
  await soon(async () => {
    const { hits } = node.stats();
    await node.authenticate(secret);
    return node.stats().hits > hits;
  }).toBe(true);
}
