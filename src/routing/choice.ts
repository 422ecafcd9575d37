/** The choice among candidates: by priority, then weight, then calls in flight. Pure. */

/** A route, or a credential of a route. */
export interface Candidate {
  /** Lower numbers are used first. */
  readonly priority: number;
  /** Its share among candidates of the same priority. 0: only where those with a weight cannot take the call. */
  readonly weight: number;
  /** Its calls in flight. */
  readonly inFlight: number;
}

/**
 * Chooses among usable candidates. The lowest priority number comes first. Within it, a draw by weight decides; among
 * those of equal weight the one with the fewest calls in flight, and among these the draw again. So weights hold exactly
 * on average, and candidates without different weights share by load.
 *
 * @param random a number from 0 (included) to 1 (excluded)
 * @returns undefined where there is none
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
  // What is left of the draw within the chosen share is as random as the draw.
  const rest = weight === 0 ? random : Math.min(Math.max(-drawn / weight, 0), 1 - Number.EPSILON);
  return idlest[Math.floor(rest * idlest.length)];
}

/**
 * The priorities of a model's routes. Where none has a weight or a priority, each is a backup of those before it, as
 * in a list of fallbacks.
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
