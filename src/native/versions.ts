/**
 * Finds the configured model of a version if a client names the version alone: Replicate's clients
 * send only the hash of `owner/name:hash`. The configuration has the model's name, so the vendor is
 * queried for the version of that model.
 */
import type { CancelSignal } from "../core/cancel-signal.ts";
import type { ModelConfig } from "../config/config.ts";
import type { NativeModelAt } from "../provider/native.ts";
import type { FindNativeModel, NativeModel } from "./models.ts";
import type { NativeMount } from "./mount.ts";

/** A request that names a version. */
interface VersionRequest {
  readonly mount: NativeMount;
  /** The name as the client sent it. */
  readonly name: string;
  readonly at: NativeModelAt;
  /** The models that the caller may use. */
  readonly models: readonly ModelConfig[];
  readonly signal: CancelSignal;
}

/** Finds models by version. */
export interface VersionLookup {
  /**
   * The model with the version. Undefined: the name is configured, or is no version of these
   * models.
   */
  find(request: VersionRequest): Promise<NativeModel | undefined>;
}

/** Maximum number of cached versions: a version always belongs to the same model. */
const rememberedMax = 1_000;

/** Maximum number of models in one lookup. */
const candidatesMax = 20;

/** Creates the lookup. @param findModel finds models by their configured names */
export function createVersionLookup(findModel: FindNativeModel): VersionLookup {
  /** By vendor and version: the vendor's name of the model. */
  const remembered = new Map<string, string>();
  return {
    async find({ mount, name, at, models, signal }) {
      if (at.in !== "body" || at.version === undefined) return undefined;
      const { owner, version } = at.version.pattern.exec(name)?.groups ?? {};
      const { pathOf } = at.version;
      const vendor = mount.vendor.name;
      if (version === undefined || findModel(vendor, name) !== undefined) return undefined;
      const candidates = models
        .flatMap(({ routes }) => routes)
        .filter((route) => route.vendor === vendor && !route.model.includes(":"))
        .map(({ model }) => model)
        .filter((model) => owner === undefined || model === owner);
      const key = `${vendor} ${version}`;
      const known = remembered.get(key);
      const tried = [...new Set(candidates)].slice(0, candidatesMax);
      let found = known !== undefined && tried.includes(known) ? known : undefined;
      for (const model of found === undefined ? tried : []) {
        if (!(await hasVersion(mount, pathOf(model, version), signal))) continue;
        found = model;
        if (remembered.size >= rememberedMax) remembered.clear();
        remembered.set(key, model);
        break;
      }
      const model = found === undefined ? undefined : findModel(vendor, found);
      return model && { ...model, version: name };
    },
  };
}

async function hasVersion(
  { transport }: NativeMount,
  target: string,
  signal: CancelSignal,
): Promise<boolean> {
  const [{ name: base }] = transport.bases;
  const headers = { accept: "application/json" };
  const reply = await transport.send({ base, method: "GET", target, headers, body: [], signal });
  reply.body.cancel();
  return reply.status === 200;
}
