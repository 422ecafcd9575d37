/** A receiver: what belongs to one account and one origin shares its caps and its breaker. */
import { hash } from "node:crypto";

/** The origin of a callback address: scheme, host and port. */
export function originOf(url: string): string {
  return new URL(url).origin;
}

/** The id of a receiver. Made of what it is, so that nobody has to look it up. */
export function endpointIdOf(accountId: string, origin: string): string {
  const hex = hash("sha256", `${accountId}\n${origin}`);
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)];
  return [...parts, hex.slice(20, 32)].join("-");
}
