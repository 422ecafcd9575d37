/** A measurement, and the maximum ratio of the gateway's CPU to the bare proxy's. */

/** Where the replies of a scenario come from. */
export type VendorName = "json" | "large" | "streams";

/** One kind of load. */
export interface Scenario {
  readonly name: ScenarioName;
  readonly title: string;
  /** `json` and `large` are nginx, `streams` is `stream-vendor.ts`. */
  readonly vendor: VendorName;
  /** The counted unit. */
  readonly unit: "request" | "chunk";
  readonly connections: number;
  readonly bodyBytes: number;
  /** The stream that is replied; `undefined`: a whole reply. */
  readonly stream?: StreamShape;
  /** The most CPU per unit of the gateway, as a multiple of the bare proxy's. */
  readonly required: number;
}

/** Shape of a stream. */
export interface StreamShape {
  readonly chunks: number;
  /** Chunks in one system call of the vendor. */
  readonly groupChunks: number;
  /** Time between two chunks. Default: as fast as they are read. */
  readonly gapMs?: number;
}

export type ScenarioName = "json" | "flood200" | "flood" | "paced" | "large";

export const scenarios: readonly Scenario[] = [
  {
    name: "json",
    title: "JSON request of 2 KB, 64 connections, closed loop",
    vendor: "json",
    unit: "request",
    connections: 64,
    bodyBytes: 2_000,
    required: 3,
  },
  {
    name: "flood200",
    title: "SSE flood, streams of 200 chunks",
    vendor: "streams",
    unit: "chunk",
    connections: 8,
    bodyBytes: 1_000,
    // Models write one event at a time.
    stream: { chunks: 200, groupChunks: 1 },
    required: 1.5,
  },
  {
    name: "flood",
    title: "SSE flood, streams of 2,000 chunks",
    vendor: "streams",
    unit: "chunk",
    connections: 8,
    bodyBytes: 1_000,
    stream: { chunks: 2_000, groupChunks: 50 },
    required: 1.5,
  },
  {
    name: "paced",
    title: "paced SSE, 200 streams × 50 chunks/s",
    vendor: "streams",
    unit: "chunk",
    connections: 200,
    bodyBytes: 1_000,
    stream: { chunks: 500, groupChunks: 1, gapMs: 20 },
    required: 1.35,
  },
  {
    name: "large",
    title: "1 MB request body",
    vendor: "large",
    unit: "request",
    connections: 4,
    bodyBytes: 1_000_000,
    required: 1.6,
  },
];

/**
 * The name of a scenario's model at its vendor. As long as the public one, so that all contestants
 * send bodies of one length.
 */
export function vendorModel(name: ScenarioName): string {
  return `vendor-${name}`;
}

/** The name that customers of the gateway use for it. */
export function publicModel(name: ScenarioName): string {
  return `public-${name}`;
}

/** The scenario of that name. */
export function scenarioOf(name: ScenarioName): Scenario {
  const found = scenarios.find((scenario) => scenario.name === name);
  if (found === undefined) throw new Error(`no scenario is called ${name}`);
  return found;
}

/** The path that all requests have. */
export const requestPath = "/v1/chat/completions";

/**
 * The body of a request. The gateway estimates fewer tokens than `max_tokens` for any stream here,
 * so no hold grows.
 */
export function requestBody({ bodyBytes, stream }: Scenario, model: string): Buffer {
  const content = "x".repeat(bodyBytes - 120);
  const messages = [{ role: "user", content }];
  const streamed = stream && { stream: true };
  return Buffer.from(JSON.stringify({ model, ...streamed, max_tokens: 10_000, messages }));
}
