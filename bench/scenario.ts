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
  /** Whether the body is a form with a recording. Default: JSON. */
  readonly isForm?: boolean;
  /** The length of a stream in chunks. Default: one chunk, a whole reply. */
  readonly chunks?: number;
  /** How many of them the vendor writes at once, where `--group` does not say. Default: 50. */
  readonly groupChunks?: number;
  /** How long a measurement of a whole run takes. Default: as long as any. */
  readonly seconds?: number;
  /** The style in which the load asks. Default: chat. */
  readonly style?: LoadStyleName;
  /** The gateway's CPU per unit, as a multiple of the bare proxy's. */
  readonly limits: Limits;
}

/** What a figure may be at most (or at least, where more is better), and what is aimed at. */
export interface Limits {
  readonly required: number;
  readonly target?: number;
}

export type ScenarioName = "json" | "flood200" | "flood" | "native" | "paced" | "large" | "upload";

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

/** Chunks of one paced stream. */
export const pacedChunks = 500;

/** Milliseconds between two chunks of a paced stream. */
export const pacedGapMs = 20;

export const scenarios: readonly Scenario[] = [
  {
    name: "json",
    title: "JSON request of 2 KB, 64 connections, closed loop",
    unit: "request",
    connections: 64,
    bodyBytes: 2_000,
    stream: false,
    limits: { required: 2.7, target: 2 },
  },
  {
    name: "flood200",
    title: "SSE flood, streams of 200 chunks",
    unit: "chunk",
    connections: 8,
    bodyBytes: 1_000,
    stream: true,
    chunks: 200,
    // As models write: one event each time it has something to say.
    groupChunks: 1,
    limits: { required: 1.5, target: 1.3 },
  },
  {
    name: "flood",
    title: "SSE flood, streams of 2,000 chunks",
    unit: "chunk",
    connections: 8,
    bodyBytes: 1_000,
    stream: true,
    chunks: 2_000,
    limits: { required: 1.4, target: 1.2 },
  },
  {
    name: "native",
    title: "SSE flood, streams of 2,000 chunks through a native prefix",
    unit: "chunk",
    connections: 8,
    bodyBytes: 1_000,
    stream: true,
    chunks: 2_000,
    style: "gemini",
    limits: { required: 1.5, target: 1.2 },
  },
  {
    name: "paced",
    title: "paced SSE, 200 streams × 50 chunks/s",
    unit: "chunk",
    connections: 200,
    bodyBytes: 1_000,
    stream: true,
    chunks: pacedChunks,
    // As long as a stream lasts, so that the begin, each checkpoint and the end of every stream counts once. All of them write
    // their first checkpoint after a second: in a turn of two seconds it would count three times.
    seconds: (pacedChunks * pacedGapMs) / 1_000,
    limits: { required: 1.25, target: 1.1 },
  },
  {
    name: "large",
    title: "1 MB request body",
    unit: "request",
    connections: 4,
    bodyBytes: 1_000_000,
    stream: false,
    limits: { required: 2.2, target: 1.6 },
  },
  {
    name: "upload",
    title: "multipart upload of 25 MB",
    unit: "request",
    connections: 1,
    bodyBytes: 25_000_000,
    stream: false,
    isForm: true,
    limits: { required: 3 },
  },
];

/** Where forms with a recording are sent. */
export const formPath = "/v1/audio/transcriptions";

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

/** The scenario of that name. */
export function scenarioOf(name: ScenarioName): Scenario {
  const found = scenarios.find((scenario) => scenario.name === name);
  if (found === undefined) throw new Error(`no scenario is called ${name}`);
  return found;
}
