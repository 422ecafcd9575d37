/** A gateway, the store of its database, and a vendor that keeps responses. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import {
  createResponseStore,
  type ResponseStore,
} from "../../../../src/responses/stored/response-store.ts";
import { type Fixture, useGateway } from "../../harness.ts";

/** Ready from `beforeAll` on. */
export interface StateFixture extends Fixture {
  /** Writes if the gateway reads. */
  readonly store: ResponseStore;
  readonly keeper: Keeper;
}

/** A vendor that keeps responses, and answers as the test says. */
export interface Keeper {
  /** The next answers, by method and URL below its address; what is not there is 404. */
  readonly answers: Map<string, KeeperAnswer>;
  /** `METHOD URL` of each request. */
  readonly asked: string[];
  /** The credentials that came with them. */
  readonly credentials: Array<string | undefined>;
}

/** A status and the exact body. */
export interface KeeperAnswer {
  readonly status?: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The credential of the vendor that keeps responses. */
export const keeperSecret = "sk-keeper-canary-77";

/**
 * Registers gateway, store and vendor for a test file. Vendors: `sim` keeps nothing, `keeper` does.
 */
export function useState(): StateFixture {
  const keeper: Keeper = { answers: new Map(), asked: [], credentials: [] };
  let server: Server;
  let pool: Pool;
  beforeAll(async () => {
    server = createServer((request, response) => {
      const name = `${request.method} ${request.url}`;
      keeper.asked.push(name);
      keeper.credentials.push(request.headers.authorization);
      const none: KeeperAnswer = { status: 404, body: '{"error":{"message":"none","code":null}}' };
      const { status = 200, body, headers } = keeper.answers.get(name) ?? none;
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  const fixture = useGateway(({ baseUrl, secret }) => {
    const { port } = server.address() as AddressInfo;
    const address = `http://127.0.0.1:${port}/v1`;
    return {
      vendors: {
        sim: { baseUrl, apiKey: secret },
        keeper: { kind: "openai", baseUrl: address, apiKey: keeperSecret },
      },
      models: {
        "public-model": {},
        "kept-model": { routes: [{ vendor: "keeper", model: "gpt" }] },
      },
    };
  });
  beforeAll(() => {
    pool = new Pool({ connectionString: fixture.gateway.databaseUrl, max: 2 });
    pool.on("error", () => {});
    Object.assign(fixture, { store: createResponseStore({ pool }), keeper });
  });
  afterAll(async () => {
    await pool.end();
    await new Promise((resolve) => server.close(resolve));
  });
  return fixture as StateFixture;
}
