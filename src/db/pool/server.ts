/**
 * The PostgreSQL server of `DATABASE_URL`. Failover is the task of the server behind that address,
 * such as HAProxy.
 */
import { Client } from "pg";
import { databaseAddressProblem } from "../../core/database-address.ts";
import { DatabaseClient, type DatabaseClientConfig, serverName } from "./client.ts";
import { ListeningConnection } from "./listening-connection.ts";

/**
 * The address of a database, or a server object. Users of the same server object share the
 * connection that listens.
 */
export type DatabaseAddress = string | DatabaseServer;

/**
 * The server of an address.
 *
 * @throws if the text is not an address; the message contains no password
 */
export function toServer(address: DatabaseAddress): DatabaseServer {
  return typeof address === "string" ? new DatabaseServer(address) : address;
}

/** A server, as far as this process uses it. */
export class DatabaseServer {
  /** Contains the password: never logged. */
  readonly url: string;
  /** Host and port, for people. */
  readonly name: string;
  /** The connection on which this process receives notifications; listeners open it. */
  readonly listening = new ListeningConnection((config) => this.createClient(config));

  constructor(url: string) {
    const problem = databaseAddressProblem(url);
    if (problem !== undefined) throw new Error(`DATABASE_URL ${problem}`);
    this.url = url;
    this.name = serverName(new Client({ connectionString: url }));
  }

  /** Creates a connection, which is not open yet. */
  createClient(config: DatabaseClientConfig = {}): Client {
    return new DatabaseClient({ ...config, connectionString: this.url });
  }

  /**
   * Requests an answer from the server, on a separate connection.
   *
   * @throws if there is none in time
   */
  async ask(limitMs: number): Promise<void> {
    const client = this.createClient({ connectLimitMs: limitMs });
    await client.connect();
    client.end(() => {});
  }
}
