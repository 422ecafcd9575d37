/** Finds the addresses of a name. */
import { Resolver } from "node:dns/promises";
import { lookup } from "node:dns/promises";

/** Finds every address of a name, both families. Rejects, or resolves to none, where it has none. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

/** How long name servers may take in all, in milliseconds. */
const answerMs = 1_500;

/** What a name server says of a name without addresses of one family. */
const emptyAnswers = new Set(["ENODATA", "ENOTFOUND"]);

/**
 * Asks the name servers for A and AAAA at once. Not by the system's `getaddrinfo`: that runs on the few threads
 * which files and cryptography share, so that names whose servers never answer could hold up the process; and
 * it would add search domains and the hosts file.
 */
export async function resolvePublic(
  hostname: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
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

/** As the operating system finds it, hosts file included: for the hosts that the operator listed. */
export async function resolveListed(hostname: string): Promise<readonly string[]> {
  return (await lookup(hostname, { all: true })).map(({ address }) => address);
}

function isEmpty(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && emptyAnswers.has(code);
}
