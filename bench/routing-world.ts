/** Three gateways of one database, and vendors that fail as they are told: the ground of the measurements of routing. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Pool } from "undici";
import { type RoutingVendor, startVendor } from "../test/support/routing-vendor.ts";
import { keep, type Place } from "./contestants.ts";
import {
  type Installation,
  installWith,
  type KeyLimits,
  operate,
  type Operator,
  serve,
  withWorkers,
} from "./gateway.ts";

/** The number of gateways. */
export const gatewayCount = 3;

/** Settings that the measurements compare with. */
export const firstByteMs = 2_000;
export const cooldownMs = 1_000;

/** The model names of the silent vendor: each is a route with a breaker of its own. */
export const silentModels: readonly string[] = Array.from(
  { length: 10 },
  (_, at) => `silent-${at}`,
);

/** A call of a customer. */
export interface Ask {
  /** The gateway that gets it, from 0. */
  readonly gateway: number;
  readonly key: string;
  readonly model: string;
  readonly messages?: readonly Message[];
  readonly stream?: boolean;
}

/** A message of a chat. */
export interface Message {
  readonly role: "user" | "assistant";
  readonly content: string;
}

/** What came of a call. */
export interface Reply {
  readonly status: number;
  readonly body: string;
  /** Until its last byte. */
  readonly ms: number;
}

const vendorNames = ["main", "dead", "silent", "three", "revoked"] as const;

type VendorName = (typeof vendorNames)[number];

const credentials = ["a", "b", "c"] as const;

/** Gateways and vendors. */
export class RoutingWorld {
  readonly vendors: Readonly<Record<VendorName, RoutingVendor>>;
  readonly #installations: readonly Installation[];
  readonly #operator: Operator;
  readonly #accountId: string;
  readonly #pools: readonly Pool[];

  private constructor(
    vendors: RoutingWorld["vendors"],
    installations: readonly Installation[],
    { operator, accountId }: { readonly operator: Operator; readonly accountId: string },
  ) {
    this.vendors = vendors;
    this.#installations = installations;
    this.#operator = operator;
    this.#accountId = accountId;
    this.#pools = installations.map(
      ({ port }) => new Pool(`http://127.0.0.1:${port}`, { connections: 64 }),
    );
  }

  /** Starts all of it. Its cleanup ends it. */
  static async start({ folder: parent, database, cleanup }: Place): Promise<RoutingWorld> {
    const folder = join(parent, "routing");
    mkdirSync(folder);
    const vendors = {} as Record<VendorName, RoutingVendor>;
    for (const name of vendorNames) {
      const vendor = await startVendor();
      cleanup.push(() => vendor.close());
      vendors[name] = vendor;
    }
    const env = Object.fromEntries(credentials.map((name) => [`BENCH_KEY_${name}`, name]));
    const first = await installWith({ folder, database, lines: configure(vendors), env });
    const installations = [first];
    while (installations.length < gatewayCount) installations.push(await withWorkers(first, 1));
    for (const each of installations) keep(await serve(each, "both"), cleanup);
    const operator = operate(first);
    const accountId = await operator.createAccount("routing");
    const world = new RoutingWorld(vendors, installations, { operator, accountId });
    cleanup.push(() => world.#close());
    return world;
  }

  /** Makes an API key with these limits. */
  createKey(limits?: KeyLimits): Promise<string> {
    return this.#operator.createKey(this.#accountId, limits);
  }

  /** Sends a call. */
  async ask({ gateway, key, model, messages = hello, stream = false }: Ask): Promise<Reply> {
    const pool = this.#pools[gateway];
    if (pool === undefined) throw new Error(`there is no gateway ${gateway}`);
    const begun = performance.now();
    const { statusCode, body } = await pool.request({
      method: "POST",
      path: "/v1/chat/completions",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages, stream, max_tokens: 5 }),
    });
    const text = await body.text();
    return { status: statusCode, body: text, ms: performance.now() - begun };
  }

  /** Whether the breaker of this route is open in the first gateway. */
  async isOpen(vendor: VendorName): Promise<boolean> {
    const [first] = this.#installations;
    const reply = await fetch(`http://${first?.env["UAS_INTERNAL_LISTEN"]}/metrics`);
    const page = await reply.text();
    const open = new RegExp(`^uas_breaker_state\\{vendor="${vendor}",model="[^"]+".*\\} 2$`, "m");
    return open.test(page);
  }

  /** Forgets the requests that vendors got. */
  forget(): void {
    for (const vendor of Object.values(this.vendors)) vendor.requests.length = 0;
  }

  async #close(): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.destroy()));
  }
}

const hello: readonly Message[] = [{ role: "user", content: "Hello" }];

function configure(vendors: RoutingWorld["vendors"]): string[] {
  const vendor = (name: VendorName, more: string): string =>
    `  ${name}: { kind: openai-compatible, base_url: "${vendors[name].baseUrl}", ${more} }`;
  const one = 'api_key: "${env:BENCH_KEY_a}"';
  const references = credentials.map((name) => `{ api_key: "\${env:BENCH_KEY_${name}}" }`);
  const several = `credentials: [${references.join(", ")}]`;
  const model = (name: string, ...routes: readonly string[]): string =>
    `  ${name}: { type: TEXT, routes: [${routes.join(", ")}], max_output_tokens: 100, price: { input: "0.25", output: "2.00" } }`;
  const route = (name: VendorName, vendorModel: string, more = ""): string =>
    `{ vendor: ${name}, model: ${vendorModel}${more} }`;
  const weighted = weights.map((weight) => route("main", `share-${weight}`, `, weight: ${weight}`));
  const backup = route("main", "backup");
  return [
    "vendors:",
    vendor("main", one),
    vendor("dead", `${one}, breaker: { cooldown: ${cooldownMs / 1_000}s }`),
    vendor("silent", `${one}, timeouts: { first_byte: ${firstByteMs / 1_000}s }`),
    vendor("three", several),
    vendor("revoked", several),
    "models:",
    model("direct", backup),
    model("dead-first", route("dead", "dead"), backup),
    model("weighted", ...weighted),
    model("chat", route("three", "chat")),
    model("revoked", route("revoked", "revoked")),
    ...silentModels.map((name) => model(name, route("silent", name), backup)),
  ];
}

/** The weights of the routes of the model `weighted`, whose names at the vendor are `share-` and the weight. */
export const weights = [70, 25, 5] as const;
