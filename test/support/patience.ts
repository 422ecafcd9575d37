/**
 * Waits of tests may take long on a busy machine, so they time out after half a minute instead of a
 * second.
 */
import { vi } from "vitest";

/** Maximum time until every process applies a change of a key or account (R-AUTH-3). */
export const changeKnownMs = 1_000;

/** Timeout of `vi.waitFor` and `vi.waitUntil`, unless a test sets one. */
const timeout = 30_000;

type Waiting = typeof vi.waitFor;

const patient = Symbol.for("uas.test.patient");

// The files of a worker share one process, and this file is loaded for each.
const state = vi as typeof vi & { [patient]?: true };
if (state[patient] !== true) {
  state[patient] = true;
  vi.waitFor = withPatience(vi.waitFor.bind(vi));
  vi.waitUntil = withPatience(vi.waitUntil.bind(vi)) as typeof vi.waitUntil;
}

function withPatience(wait: Waiting): Waiting {
  return (look, options = {}) =>
    wait(look, typeof options === "number" ? options : { timeout, ...options });
}
