/** How long a large body blocks the event loop on its way between two styles, beside one JSON.parse of it. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Dialect } from "../gen/uas/http/v1/http_pb.ts";
import type { TextDialect } from "../src/dialect/dialect.ts";
import { crossScenarios } from "./scenario.ts";
import { median, type Ratio, ratioOf } from "./statistics.ts";
import { type StyleName, styles } from "./style.ts";

/** One direction. */
export interface BodyResult {
  readonly title: string;
  readonly parseMs: number;
  readonly crossMs: number;
  /** Of translating to parsing, each pair in turn. */
  readonly ratio: Ratio;
}

const dialectOf: Readonly<Record<StyleName, Dialect>> = {
  chat: Dialect.CHAT_COMPLETIONS,
  responses: Dialect.RESPONSES,
  messages: Dialect.MESSAGES,
};

/** How often each is done in turn, after some that warm up. */
const rounds = 51;
const warmUpRounds = 10;

/** The length of the body, in bytes. */
const bodyBytes = 1_000_000;

/** Measures every direction in this process. @param root the folder of the checkout whose code it is
 * @throws where that has no such code */
export async function measureBodies(root: string): Promise<BodyResult[]> {
  const file = pathToFileURL(join(root, "src/dialect/index.ts")).href;
  const { textDialects } = (await import(file)) as typeof import("../src/dialect/index.ts");
  const codec = (style: StyleName): TextDialect => {
    const dialect = textDialects.get(dialectOf[style]);
    if (dialect === undefined) throw new Error(`no dialect ${style}`);
    return dialect;
  };
  return crossScenarios.map(({ title, caller, vendor }) =>
    measureBody(title, { caller, from: codec(caller), to: codec(vendor) }),
  );
}

interface Direction {
  readonly caller: StyleName;
  readonly from: TextDialect;
  readonly to: TextDialect;
}

function measureBody(title: string, { caller, from, to }: Direction): BodyResult {
  const content = text(bodyBytes);
  const body = Buffer.from(JSON.stringify(styles[caller].request("public", content)));
  const target = {
    model: "vendor",
    stream: true,
    maxOutputTokens: 4096,
    sourceDialect: dialectOf[caller],
  };
  const parse = (): unknown => JSON.parse(body.toString("utf8"));
  const cross = (): unknown => {
    const { outline } = from.readRequest(body, { alwaysStream: false, platformAliases: false });
    return to.encodeRequest(from.decodeRequest(body, { platformAliases: false, outline }), target);
  };
  for (let round = 0; round < warmUpRounds; round++) [parse, cross].forEach(timed);
  const parsed: number[] = [];
  const crossed: number[] = [];
  for (let round = 0; round < rounds; round++) {
    parsed.push(timed(parse));
    crossed.push(timed(cross));
  }
  return {
    title,
    parseMs: median(parsed),
    crossMs: median(crossed),
    ratio: ratioOf(crossed, parsed),
  };
}

/** Prose with what JSON must escape now and then. */
function text(bytes: number): string {
  const line = 'She said: "Where is the café?" — and left.\n';
  return line.repeat(Math.ceil(bytes / Buffer.byteLength(line)));
}

/** Milliseconds by the clock: a thread's CPU time is counted in ticks of 4 ms. */
function timed(work: () => unknown): number {
  const began = performance.now();
  work();
  return performance.now() - began;
}
