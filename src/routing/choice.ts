/**
 * The choice among candidates: by priority, then by conversation, or by weight and calls in flight.
 * Pure.
 */
import { hash } from "node:crypto";

/** A route, or a credential of a route. */
export interface Candidate {
  /** Lower numbers are used first. */
  readonly priority: number;
  /**
   * Share among candidates of the same priority. 0: used only if no candidate with a weight can
   * take the call.
   */
  readonly weight: number;
  /** Its calls in flight. */
  readonly inFlight: number;
}

/**
 * Chooses among usable candidates. The lowest priority number comes first. Within it, a draw by
 * weight decides; among equal weights the candidate with the fewest calls in flight, and among
 * these the draw again. Weights therefore hold exactly on average, and candidates with equal
 * weights share by load.
 *
 * @param random a number from 0 (included) to 1 (excluded)
 * @returns undefined if there is none
 */
export function chooseCandidate<Each extends Candidate>(
  usable: readonly Each[],
  random: number,
): Each | undefined {
  if (usable.length <= 1) return usable[0];
  const priority = Math.min(...usable.map((each) => each.priority));
  const preferred = usable.filter((each) => each.priority === priority);
  const total = preferred.reduce((sum, { weight }) => sum + weight, 0);
  let drawn = random * total;
  // The last one takes what rounding leaves over.
  let weight = 0;
  for (const each of preferred) {
    if (each.weight === 0) continue;
    ({ weight } = each);
    drawn -= weight;
    if (drawn < 0) break;
  }
  const equals = preferred.filter((each) => each.weight === weight);
  const fewest = Math.min(...equals.map((each) => each.inFlight));
  const idlest = equals.filter((each) => each.inFlight === fewest);
  // The remainder of the draw within the chosen share is as random as the draw.
  const rest = weight === 0 ? random : Math.min(Math.max(-drawn / weight, 0), 1 - Number.EPSILON);
  return idlest[Math.floor(rest * idlest.length)];
}

/**
 * Chooses among usable candidates for a conversation, by weighted rendezvous hashing: the lowest
 * priority number comes first; within it each candidate gets a share of the conversations by its
 * weight. If a candidate is no longer usable, only its own conversations move.
 *
 * @param nameOf a name of the candidate that is the same in all processes
 * @returns undefined if there is none
 */
export function chooseByConversation<Each extends Candidate>(
  usable: readonly Each[],
  conversation: string,
  nameOf: (candidate: Each) => string,
): Each | undefined {
  if (usable.length <= 1) return usable[0];
  const priority = Math.min(...usable.map((each) => each.priority));
  const preferred = usable.filter((each) => each.priority === priority);
  const weighted = preferred.filter(({ weight }) => weight > 0);
  let best: Each | undefined;
  let bestScore = Number.POSITIVE_INFINITY;
  for (const each of weighted.length > 0 ? weighted : preferred) {
    // An exponential draw for each candidate: the smallest one is of each with a probability by its
    // weight.
    const score = -Math.log(uniform(`${conversation}\0${nameOf(each)}`)) / (each.weight || 1);
    if (score >= bestScore) continue;
    best = each;
    bestScore = score;
  }
  return best;
}

/** A number above 0 and up to 1 that only depends on the text. */
function uniform(text: string): number {
  return (hash("sha1", text, "buffer").readUIntBE(0, 6) + 1) / 2 ** 48;
}

/**
 * The priorities of a model's routes. Where none has a weight or a priority, each is a backup of
 * those before it, as in a list of fallbacks.
 */
export function routePriorities(
  routes: readonly {
    readonly weight?: number | undefined;
    readonly priority?: number | undefined;
  }[],
): readonly number[] {
  const isList = routes.every(
    ({ weight, priority }) => weight === undefined && priority === undefined,
  );
  return routes.map(({ priority = 0 }, index) => (isList ? index : priority));
}
