/**
 * The configuration in force in a process: a `Config` whose content a reload exchanges while calls
 * run. Each call keeps the model, price and routes that it has read.
 */
import { isDeepStrictEqual } from "node:util";
import type { Config } from "./config.ts";

/**
 * The sections that a process reads only at its start: the storage in which results are, and the
 * address check of tests.
 */
const sectionsAtStart = ["storage", "webhooks"] as const;

/** The configuration in force. {@link LiveConfig.exchange} puts another one in its place. */
export class LiveConfig implements Config {
  #current: Config;
  readonly #first: Config;
  readonly #followers: ((next: Config) => void)[] = [];

  constructor(first: Config) {
    this.#current = first;
    this.#first = first;
  }

  /**
   * Puts another configuration into force, in one step: no call sees parts of both. Sections that
   * are read only at the start keep their content.
   *
   * @returns what differs and has no effect before a restart, as paths such as `storage`
   */
  exchange(next: Config): readonly string[] {
    this.#current = next;
    for (const follow of this.#followers) follow(next);
    return this.needsRestart(next);
  }

  /** Calls `follow` in each {@link exchange}, in the order of the registrations. */
  onExchange(follow: (next: Config) => void): void {
    this.#followers.push(follow);
  }

  /** The configuration as it was loaded last, with the sections that wait for a restart. */
  get current(): Config {
    return this.#current;
  }

  /** Lists the settings that differ from the start and have no effect before a restart. */
  needsRestart(next: Config): readonly string[] {
    const first = this.#first;
    return sectionsAtStart.filter((name) => !isDeepStrictEqual(next[name], first[name]));
  }

  get source(): Config["source"] {
    return this.#current.source;
  }
  get document(): Config["document"] {
    return this.#current.document;
  }
  get hash(): Config["hash"] {
    return this.#current.hash;
  }
  get revision(): Config["revision"] {
    return this.#current.revision;
  }
  get isDemo(): Config["isDemo"] {
    return this.#current.isDemo;
  }
  get vendors(): Config["vendors"] {
    return this.#current.vendors;
  }
  get models(): Config["models"] {
    return this.#current.models;
  }
  get priceLists(): Config["priceLists"] {
    return this.#current.priceLists;
  }
  get cors(): Config["cors"] {
    return this.#current.cors;
  }
  get retention(): Config["retention"] {
    return this.#current.retention;
  }
  get webhooks(): Config["webhooks"] {
    return this.#first.webhooks;
  }
  get storage(): Config["storage"] {
    return this.#first.storage;
  }
  get limits(): Config["limits"] {
    return this.#current.limits;
  }
  get console(): Config["console"] {
    return this.#current.console;
  }
  get sms(): Config["sms"] {
    return this.#current.sms;
  }
  get smtp(): Config["smtp"] {
    return this.#current.smtp;
  }
  get alerts(): Config["alerts"] {
    return this.#current.alerts;
  }
  get places(): Config["places"] {
    return this.#current.places;
  }
  get included(): Config["included"] {
    return this.#current.included;
  }
  get warnings(): Config["warnings"] {
    return this.#current.warnings;
  }
}
