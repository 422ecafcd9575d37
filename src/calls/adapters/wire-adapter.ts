/** Calls in a wire style. */
import { namedModel } from "../../dialect/body-members.ts";
import { hasRoutingMembers, takeRoutingMembers } from "./routing-members.ts";
import { checkRequest } from "./headers.ts";
import { CallAdapter, type Repetition, repetitionOfBytes } from "../pipeline/adapter.ts";
import { readPreferences } from "../../routing/preferences.ts";
import { type WireOptions, WireRequest, noWishes } from "./wire-request.ts";

/** The caller's side of a call whose body is in a wire style. */
export class WireAdapter extends CallAdapter<Buffer> {
  readonly #options: WireOptions;

  constructor(options: WireOptions) {
    super();
    this.#options = options;
  }

  get path(): string {
    return this.#options.request.path;
  }

  override get repetition(): Repetition<Buffer> {
    const { query, body } = this.#options.request;
    return repetitionOfBytes(query, body);
  }

  read(): WireRequest {
    const { request } = this.#options;
    checkRequest(request);
    const { body, headers } = request;
    const header = headers["x-uas-route"];
    const wishes =
      header === undefined ? noWishes : { preferences: readPreferences(header, "x-uas-route") };
    const plain = { body, sent: undefined, previous: undefined, wishes };
    const read = new WireRequest(this.#options, plain);
    if (!hasRoutingMembers(read.text.outline)) return read;
    const { body: rest, ...taken } = takeRoutingMembers(body, read.text.outline);
    const { preferences = taken.preferences } = wishes;
    return new WireRequest(this.#options, {
      ...plain,
      body: rest,
      wishes: { ...taken, preferences },
    });
  }

  modelName(): string {
    const { body, platformAliases } = this.#options.request;
    return namedModel(body, platformAliases ? ["model", "modelKey"] : ["model"]);
  }
}
