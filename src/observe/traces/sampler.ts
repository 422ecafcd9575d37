/** Decides which traces are sent, by `OTEL_TRACES_SAMPLER` and its argument. */
import type { SpanContext } from "./ids.ts";

/** A new span without a local parent. */
interface Candidate {
  readonly traceId: string;
  /** The caller's span. */
  readonly parent: SpanContext | undefined;
  /** The span of the work that caused this one. */
  readonly cause: SpanContext | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

const prefix = "parentbased_";

/**
 * Creates the sampler. Default: `parentbased_always_on`, also for an unknown name, which is
 * reported. What sampled work has caused is always sampled, so that the traces of a submit, its
 * task and its webhooks are complete.
 */
export function createSampler(
  env: Environment,
  warn: (message: string, fields: object) => void,
): (candidate: Candidate) => boolean {
  const name = env["OTEL_TRACES_SAMPLER"] || "parentbased_always_on";
  const isParentBased = name.startsWith(prefix);
  const root = rootSampler(isParentBased ? name.slice(prefix.length) : name, env);
  if (root === undefined) {
    warn("OTEL_TRACES_SAMPLER is not known: parentbased_always_on is used", { sampler: name });
    return ({ parent }) => parent?.isSampled ?? true;
  }
  return ({ traceId, parent, cause }) => {
    if (cause?.isSampled === true) return true;
    return (isParentBased ? parent?.isSampled : undefined) ?? root(traceId);
  };
}

function rootSampler(name: string, env: Environment): ((traceId: string) => boolean) | undefined {
  if (name === "always_on") return () => true;
  if (name === "always_off") return () => false;
  if (name !== "traceidratio") return undefined;
  const ratio = ratioOf(env);
  return (traceId) => Number.parseInt(traceId.slice(16, 28), 16) < ratio * 2 ** 48;
}

/** A number from 0 to 1. Default 1, as in the specification. */
function ratioOf(env: Environment): number {
  const ratio = Number(env["OTEL_TRACES_SAMPLER_ARG"] || 1);
  return ratio >= 0 && ratio <= 1 ? ratio : 1;
}
