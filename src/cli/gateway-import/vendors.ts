/** The vendors of an import: deployments with the same address and credentials share one. */
import type { Deployment, ImportNote, Upstream } from "./source.ts";

/** A credential of a vendor. */
export interface ImportedCredential {
  readonly variable: string;
  readonly weight: number;
  readonly priority: number;
  rpm: number | undefined;
  tpm: number | undefined;
}

/** A vendor. */
export interface ImportedVendor {
  readonly name: string;
  readonly upstream: Upstream;
  readonly credentials: readonly ImportedCredential[];
}

/** Deployments of one model with the same vendor's model. */
export interface DeploymentGroup {
  readonly deployments: readonly [Deployment, ...Deployment[]];
  readonly weight: number;
  /** Lower numbers are used first. */
  readonly priority: number;
}

/** The vendors of an import. */
export class ImportedVendors {
  readonly #vendors = new Map<string, ImportedVendor>();
  readonly #names = new Set<string>();
  readonly #limited = new Map<ImportedCredential, boolean>();
  /** Aliases and wildcards are several models of one deployment: its limits count once. */
  readonly #counted = new Map<ImportedCredential, Set<string>>();

  /** In the order in which they were added. */
  get all(): readonly ImportedVendor[] {
    return [...this.#vendors.values()];
  }

  /**
   * The vendor of a route. Another set of credentials makes another vendor, because each credential
   * of a vendor serves all its models.
   */
  vendorOf(group: DeploymentGroup): ImportedVendor {
    const [{ upstream }] = group.deployments;
    const shares = sharesOf(group);
    const id = JSON.stringify([upstream, shares]);
    const known = this.#vendors.get(id);
    const vendor = known ?? {
      name: this.#unusedName(upstream),
      upstream,
      credentials: shares.map((share) => ({ ...share, rpm: undefined, tpm: undefined })),
    };
    this.#vendors.set(id, vendor);
    this.#addLimits(vendor, group);
    return vendor;
  }

  /** Notes of limits that only some deployments of a credential have. */
  notes(): readonly ImportNote[] {
    return [...this.#limited].flatMap(([credential, isLimited]) =>
      isLimited ? [] : [dropLimits(credential)],
    );
  }

  /** A credential may use what its deployments may together. */
  #addLimits({ credentials }: ImportedVendor, { deployments }: DeploymentGroup): void {
    for (const { keys, rpm, tpm, place } of deployments) {
      for (const credential of credentials.filter(({ variable }) => keys.includes(variable))) {
        const counted = this.#counted.get(credential) ?? new Set();
        if (counted.has(place)) continue;
        this.#counted.set(credential, counted.add(place));
        const isFirst = !this.#limited.has(credential);
        const isSame =
          isFirst || (isSet(credential.rpm) === isSet(rpm) && isSet(credential.tpm) === isSet(tpm));
        this.#limited.set(credential, isSame && (this.#limited.get(credential) ?? true));
        if (rpm !== undefined) credential.rpm = (credential.rpm ?? 0) + rpm;
        if (tpm !== undefined) credential.tpm = (credential.tpm ?? 0) + tpm;
      }
    }
  }

  #unusedName({ preset, kind, baseUrl }: Upstream): string {
    const wish = preset ?? hostWord(baseUrl) ?? kind ?? "vendor";
    let name = wish;
    for (let count = 2; this.#names.has(name); count++) name = `${wish}-${count}`;
    this.#names.add(name);
    return name;
  }
}

function isSet(limit: number | undefined): boolean {
  return limit !== undefined;
}

function dropLimits(credential: ImportedCredential): ImportNote {
  credential.rpm = undefined;
  credential.tpm = undefined;
  const text =
    "only some of its deployments have rpm or tpm: not imported; set limits of the credential";
  return { place: credential.variable, text };
}

function hostWord(baseUrl: string | undefined): string | undefined {
  const reference = /\$\{env:([^}]*)\}/.exec(baseUrl ?? "")?.[1];
  const text = reference ?? URL.parse(baseUrl ?? "")?.host;
  const word = text
    ?.toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 50);
  return word === "" ? undefined : word;
}

interface Share {
  readonly variable: string;
  readonly weight: number;
  readonly priority: number;
}

/** The credentials of a route with their shares of its calls. */
function sharesOf({ deployments, priority }: DeploymentGroup): readonly Share[] {
  const shares = new Map<string, Share>();
  for (const deployment of deployments) {
    for (const variable of deployment.keys) {
      const known = shares.get(variable);
      shares.set(variable, {
        variable,
        weight: (known?.weight ?? 0) + (deployment.weight ?? 1),
        priority: Math.min(known?.priority ?? Infinity, deployment.priority - priority),
      });
    }
  }
  const found = [...shares.values()].toSorted((a, b) => (a.variable < b.variable ? -1 : 1));
  const isEven = new Set(found.map(({ weight }) => weight)).size === 1;
  return isEven ? found.map((share) => ({ ...share, weight: 1 })) : found;
}
