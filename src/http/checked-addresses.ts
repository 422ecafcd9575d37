/**
 * Finds the addresses of a host that a customer names, and decides whether they may be reached. A
 * name is resolved once; the connection uses these addresses, so a second, different DNS answer
 * (DNS rebinding) has no effect.
 */
import { lookup, Resolver } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import { GuardFailure } from "./guard-failure.ts";
import { canonicalAddress, isPublicAddress } from "./public-address.ts";
import { literalAddress } from "./public-url.ts";

/** Addresses that may be reached. */
export interface AddressOptions {
  /** Exact hosts, in lower case, that may have any address. None by default. */
  readonly allowHosts?: readonly string[];
  /** Resolves names that are not listed. DNS by default. */
  readonly resolve?: Resolve;
  /**
   * Addresses of this machine, which are always blocked. By default the addresses of its network
   * interfaces.
   */
  readonly ownAddresses?: () => readonly string[];
}

/**
 * Resolves all addresses of a name, both families. Rejects, or resolves to an empty list, if there
 * are none.
 */
type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

/**
 * All addresses of a host, in canonical spelling. A single non-public address blocks the whole
 * name: a mixture is an attempt to bypass the check.
 *
 * @throws GuardFailure
 */
export async function findAddresses(
  hostname: string,
  options: AddressOptions,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const isListed = options.allowHosts?.includes(hostname) ?? false;
  const resolve = isListed ? resolveListed : (options.resolve ?? resolvePublic);
  const addresses = await resolveHost(hostname, resolve, signal);
  const own = new Set((options.ownAddresses ?? machineAddresses)());
  const isOpen = addresses.every((address) => isPublicAddress(address) && !own.has(address));
  if (isListed || isOpen) return addresses;
  throw new GuardFailure("blocked_address", "not a public address");
}

async function resolveHost(
  hostname: string,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const literal = literalAddress(hostname);
  if (literal !== undefined) return [canonicalAddress(literal)];
  try {
    const found = await unless(signal, resolve(hostname, signal));
    if (found.length > 0) return [...new Set(found.map(canonicalAddress))];
  } catch (error) {
    throw GuardFailure.of(error, "dns", signal);
  }
  throw new GuardFailure("dns", "the name has no address");
}

function machineAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .map(({ address }) => canonicalAddress(address.split("%")[0] ?? address));
}

/** Resolves with the work, unless the signal is aborted first. */
function unless<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Deadline for all DNS queries. */
const answerMs = 1_500;

/** DNS errors that mean "no address of this family". */
const emptyAnswers = new Set(["ENODATA", "ENOTFOUND"]);

/**
 * Queries A and AAAA records in parallel. Not `getaddrinfo`: it runs on the few threads shared with
 * files and cryptography, so names with unresponsive servers could block the process. It would also
 * use search domains and the hosts file.
 */
async function resolvePublic(hostname: string, signal: AbortSignal): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: answerMs, tries: 1 });
  const cancel = (): void => resolver.cancel();
  signal.addEventListener("abort", cancel);
  const timer = setTimeout(cancel, answerMs);
  try {
    const answers = await Promise.allSettled([
      resolver.resolve4(hostname),
      resolver.resolve6(hostname),
    ]);
    const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    if (found.length > 0) return found;
    for (const answer of answers) {
      if (answer.status === "rejected" && !isEmpty(answer.reason)) throw answer.reason;
    }
    return [];
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
  }
}

/**
 * Resolves as the operating system does, hosts file included: for the hosts that the operator
 * listed.
 */
async function resolveListed(hostname: string): Promise<readonly string[]> {
  return (await lookup(hostname, { all: true })).map(({ address }) => address);
}

function isEmpty(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && emptyAnswers.has(code);
}
