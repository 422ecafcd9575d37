/** What is measured, and how much more CPU than the bare proxy the gateway may take for it. */
import { type LoadStyleName, type StyleName, styleNames } from "./style.ts";

/** One kind of load. */
export interface Scenario {
  readonly name: ScenarioName;
  readonly title: string;
  /** What is counted. */
  readonly unit: "request" | "chunk";
  /** How many connections are busy at once. */
  readonly connections: number;
  /** The length of the request body in bytes. */
  readonly bodyBytes: number;
  readonly stream: boolean;
  /** The style in which the load asks. Default: chat. */
  readonly style?: LoadStyleName;
  /** The most that the gateway may take, as a multiple of the bare proxy's CPU per unit. */
  readonly goal: number;
}

export type ScenarioName = "json" | "flood" | "native" | "paced" | "large";

/** Paced streams from one style into another, beside the same streams relayed. */
export interface CrossScenario {
  readonly title: string;
  readonly caller: StyleName;
  readonly vendor: StyleName;
}

/** Every direction. */
export const crossScenarios: readonly CrossScenario[] = styleNames.flatMap((caller) =>
  styleNames
    .filter((vendor) => vendor !== caller)
    .map((vendor) => ({ title: `${caller} from ${vendor}`, caller, vendor })),
);

/** The most CPU per chunk that translating may take, as a multiple of relaying. */
export const crossGoal = 2.5;

/** The longest that a large body may block the loop between two styles, as a multiple of a JSON.parse. */
export const bodyGoal = 3;

export const scenarios: readonly Scenario[] = [
  {
    name: "json",
    title: "JSON replies, closed loop",
    unit: "request",
    connections: 64,
    bodyBytes: 1_000,
    stream: false,
    goal: 2.5,
  },
  {
    name: "flood",
    title: "SSE as fast as it goes",
    unit: "chunk",
    connections: 8,
    bodyBytes: 1_000,
    stream: true,
    goal: 1.5,
  },
  {
    name: "native",
    title: "SSE as fast as it goes, in a vendor's own form",
    unit: "chunk",
    connections: 8,
    bodyBytes: 1_000,
    stream: true,
    style: "gemini",
    goal: 1.5,
  },
  {
    name: "paced",
    title: "SSE, 200 streams × 50 chunks/s",
    unit: "chunk",
    connections: 200,
    bodyBytes: 1_000,
    stream: true,
    goal: 1.3,
  },
  {
    name: "large",
    title: "1 MB request body",
    unit: "request",
    connections: 4,
    bodyBytes: 1_000_000,
    stream: false,
    goal: 3,
  },
];

/** Chunks of one flooded stream. */
export const floodChunks = 2_000;

/** Chunks of one paced stream: ten seconds. */
export const pacedChunks = 500;

/** Milliseconds between two chunks of a paced stream. */
export const pacedGapMs = 20;

/** The name that the bench's upstream knows a scenario's model by. As long as the public one, so that
 * both contestants carry bodies of the same length. */
export function vendorModel(name: ScenarioName): string {
  return `vendor-${name}`;
}

/** The name that customers of the gateway call it by. */
export function publicModel(name: ScenarioName): string {
  return `public-${name}`;
}

/** The gateway's model for paced streams of a vendor that speaks `style`. */
export function pacedModel(style: StyleName): string {
  return `public-paced-${style}`;
}

/** The load of paced streams. */
export function pacedScenario(): Scenario {
  const paced = scenarios.find(({ name }) => name === "paced");
  if (paced === undefined) throw new Error("no scenario is called paced");
  return paced;
}
