/** "Did you mean" in error messages. */
import { closest, distance } from "fastest-levenshtein";

/**
 * Longer words, in characters, are not mistyped names: comparing one of megabytes would block the
 * event loop.
 */
const wordMax = 100;

/**
 * Finds the candidate that a mistyped word most likely means.
 *
 * @returns undefined if none is close: a wrong guess misleads more than no guess
 */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  if (candidates.length === 0 || word.length > wordMax) return undefined;
  const lower = word.toLowerCase();
  const longer = candidates.filter((candidate) => candidate.toLowerCase().startsWith(lower));
  if (lower.length >= 4 && longer.length === 1) return longer[0];
  const found = closest(
    lower,
    candidates.map((candidate) => candidate.toLowerCase()),
  );
  const match = candidates.find((candidate) => candidate.toLowerCase() === found);
  const allowed = Math.max(1, Math.floor(Math.min(lower.length, found.length) / 3));
  return distance(lower, found) <= allowed ? match : undefined;
}

/**
 * The end of a message about an unknown word: `, did you mean "x"?`, or the list of candidates if
 * none is close.
 */
export function hint(word: string, candidates: readonly string[]): string {
  const near = nearest(word, candidates);
  if (near !== undefined) return `, did you mean "${near}"?`;
  return candidates.length === 0 ? "" : ` (there is: ${candidates.join(", ")})`;
}
