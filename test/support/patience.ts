/** What a test waits for may take long on a busy machine: it is given up after half a minute, not after a second. */
import { vi } from "vitest";

/** How long a change of a key or account may take until every process knows it, in milliseconds (R-AUTH-3). */
export const changeKnownMs = 1_000;

/** For `vi.waitFor` and `vi.waitUntil` if a test names no time of its own, in milliseconds. */
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
