/**
 * A gateway before vendors of every kind, with customers of several sorts: what long runs are made
 * against.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Pool } from "pg";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { openBrowser } from "../../unit/account/browser.ts";
import { caFile } from "../../support/receiver.ts";
import { GatewayProcess, type StartOptions } from "./gateway-process.ts";
import { startVendors, type Vendors } from "./vendors.ts";

/** An account with a key. */
export interface KeyHolder {
  readonly accountId: string;
  readonly keyId: string;
  readonly key: string;
}

/** Everything that runs. */
export interface World {
  readonly gateway: GatewayProcess;
  readonly vendors: Vendors;
  readonly pool: Pool;
  /** With the operator's credentials. */
  readonly transport: Transport;
  readonly operatorToken: string;
  /** Has more money than any run can spend. */
  readonly rich: KeyHolder;
  /** Has none. */
  readonly poor: KeyHolder;
  /** Its key may use one model only. Operators' calls that destroy something name this account. */
  readonly victim: KeyHolder;
  /** A signed-in session of the victim's account, as the console sends it. */
  readonly cookie: string;
  close(): Promise<void>;
}

/** Differences from the default world. */
export interface WorldOptions extends StartOptions {
  /**
   * Maps a vendor's origin to the address that the gateway uses, such as a proxy. Default:
   * unchanged.
   */
  readonly addressOf?: (vendor: string, origin: string) => string;
  /** More members of every vendor, for example its timeouts. Default: none. */
  readonly vendorMembers?: object;
}

/** The most that a top-up can be. */
const richNanos = 10n ** 15n;

/** Starts it on an empty or migrated database. */
export async function startWorld(databaseUrl: string, options: WorldOptions = {}): Promise<World> {
  const dataDir = mkdtempSync(join(tmpdir(), "uas-fuzz-"));
  const operatorToken = `operator-${randomBytes(16).toString("hex")}`;
  const vendors = await startVendors();
  const { yaml, env } = configOf(vendors, options);
  const masterKey = randomBytes(32).toString("base64");
  const settings = { UAS_OPERATOR_TOKEN: operatorToken, UAS_MASTER_KEY: masterKey };
  const plan = { dataDir, databaseUrl, yaml, env: { ...env, ...settings } };
  const gateway = await GatewayProcess.start(plan, options);
  const pool = new Pool({ connectionString: databaseUrl, max: 2 });
  const close = async (): Promise<void> => {
    await gateway.stop();
    await pool.end();
    await vendors.close();
    rmSync(dataDir, { recursive: true, force: true });
  };
  try {
    const transport = createOperatorTransport(gateway.internalUrl, operatorToken);
    const rich = await createKeyHolder(transport, { nanos: richNanos });
    const poor = await createKeyHolder(transport, { nanos: 0n });
    const victim = await createKeyHolder(transport, { nanos: richNanos, models: ["m-chat"] });
    const cookie = await signIn(transport, gateway.url, victim.accountId);
    return { gateway, vendors, pool, transport, operatorToken, rich, poor, victim, cookie, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function createOperatorTransport(baseUrl: string, operatorToken: string): Transport {
  return createConnectTransport({
    baseUrl,
    httpVersion: "1.1",
    nodeOptions: { agent: false },
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${operatorToken}`);
        return next(request);
      },
    ],
  });
}

async function createKeyHolder(
  transport: Transport,
  { nanos, models = [] }: { readonly nanos: bigint; readonly models?: string[] },
): Promise<KeyHolder> {
  const { account } = await createClient(AccountService, transport).createAccount({ name: "fuzz" });
  const { accountId = "" } = account ?? {};
  if (nanos > 0n) {
    const amount = { currencyCode: "USD", amountNanos: nanos };
    await createClient(BillingService, transport).topUp({ accountId, amount, reference: "fuzz" });
  }
  const made = await createClient(KeyService, transport).createKey({ accountId, models });
  return { accountId, keyId: made.key?.keyId ?? "", key: made.secret };
}

async function signIn(transport: Transport, url: string, accountId: string): Promise<string> {
  const users = createClient(UserService, transport);
  const { user } = await users.createUser({ accountId });
  const { token } = await users.createSignInLink({ userId: user?.userId ?? "" });
  const browser = openBrowser(url);
  await browser.session.signInWithLink({ token });
  return browser.cookie ?? "";
}

const textPrice = { input: "0.25", cached_input: "0.025", output: "2.00" };

/** Of the vendors that {@link Vendors.media} plays. */
export const mediaSecret = "sk-media-canary-77aa";

/** The configuration: every kind of vendor, and models of every type. */
function configOf(
  vendors: Vendors,
  { addressOf = (_, origin) => origin, vendorMembers = {} }: WorldOptions,
): { readonly yaml: string; readonly env: Readonly<Record<string, string>> } {
  const env: Record<string, string> = {};
  const vendor = (name: string, origin: string, secret: string, more: object): object => {
    const variable = `SECRET_${name.toUpperCase().replaceAll("-", "_")}`;
    env[variable] = secret;
    const api_key = `\${env:${variable}}`;
    return { base_url: addressOf(name, origin), api_key, ...vendorMembers, ...more };
  };
  const { chat, responses, messages, gemini } = vendors.text;
  const native = Object.entries(vendors.native).map(([name, { origin, secret }]) => {
    const prefix = { kind: name, native_prefix: `/${name}` };
    const at = addressOf(`native-${name}`, origin);
    const run = name === "fal" ? { run_base_url: `${at}/run` } : {};
    return [name, vendor(`native-${name}`, origin, secret, { ...prefix, ...run })];
  });
  const withV1 = (upstream: { readonly origin: string }): string => `${upstream.origin}/v1`;
  const document = {
    version: 1,
    vendors: {
      "text-chat": vendor("text-chat", withV1(chat), chat.secret, {
        kind: "openai-compatible",
        dialects: ["chat-completions"],
      }),
      "text-chat-b": vendor("text-chat-b", withV1(chat), chat.secret, {
        kind: "openai-compatible",
        dialects: ["chat-completions"],
      }),
      "text-responses": vendor("text-responses", withV1(responses), responses.secret, {
        kind: "openai",
        dialects: ["responses"],
      }),
      "text-messages": vendor("text-messages", messages.origin, messages.secret, {
        kind: "anthropic",
      }),
      "text-gemini": vendor("text-gemini", gemini.origin, gemini.secret, { kind: "gemini" }),
      media: vendor("media", `${vendors.media.url}/v1`, mediaSecret, { kind: "openai-compatible" }),
      openai: vendor("openai", `${vendors.media.url}/v1`, mediaSecret, { kind: "openai" }),
      cohere: vendor("cohere", vendors.media.url, mediaSecret, { kind: "cohere" }),
      jina: vendor("jina", `${vendors.media.url}/v1`, mediaSecret, { kind: "jina" }),
      demo: { kind: "demo" },
      ...Object.fromEntries(native),
    },
    models: modelsOf(),
    webhooks: { allow_hosts: ["localhost"], ca_file: caFile },
  };
  return { yaml: JSON.stringify(document, null, 1), env };
}

function modelsOf(): object {
  const text = (vendor: string, model = "vendor-model"): object => ({
    type: "TEXT",
    routes: [{ vendor, model }],
    max_output_tokens: 4_096,
    price: textPrice,
    retry: { attempts: 1 },
  });
  const made = (type: string, vendor: string, model: string): object => ({
    type,
    routes: [{ vendor, model }],
    retry: { attempts: 1 },
    price: type === "IMAGE" ? { image: "0.003" } : { second: "0.05" },
  });
  return {
    "m-chat": text("text-chat"),
    "m-again": {
      ...text("text-chat"),
      routes: ["text-chat", "text-chat-b"].map((name, priority) => ({
        ...{ vendor: name, model: "vendor-model", priority },
      })),
      retry: { attempts: 3 },
    },
    "m-responses": text("text-responses"),
    "m-messages": text("text-messages"),
    "m-gemini": text("text-gemini"),
    embed: {
      type: "EMBEDDING",
      routes: [{ vendor: "media", model: "v" }],
      retry: { attempts: 1 },
      price: { input: "0.1" },
    },
    pictures: made("IMAGE", "media", "v"),
    voice: {
      type: "AUDIO",
      routes: [{ vendor: "media", model: "v" }],
      retry: { attempts: 1 },
      price: { character: "0.00001" },
    },
    ears: made("AUDIO", "media", "v"),
    ranker: { ...made("RERANK", "cohere", "v"), price: { search: "0.002" } },
    "ranker-jina": { ...made("RERANK", "jina", "v"), price: { input: "0.02" } },
    moderator: { ...made("MODERATION", "openai", "v"), price: { input: "0.01" } },
    instruct: text("media", "v"),
    "demo/instant": text("demo", "instant"),
    draw: made("IMAGE", "demo", "image"),
    speak: made("AUDIO", "demo", "audio"),
    "gemini-x": {
      ...text("gemini", "gemini-x"),
      price: { ...textPrice, cache_storage: "1.00" },
    },
    veo: made("VIDEO", "gemini", "veo-x"),
    "qwen-plus": text("dashscope", "qwen-plus"),
    "wan2.6-t2i": made("IMAGE", "dashscope", "wan2.6-t2i"),
    "fal-ai/flux/schnell": made("IMAGE", "fal", "fal-ai/flux/schnell"),
    "labs/flux": made("IMAGE", "replicate", "labs/flux"),
  };
}
