/** How long a large body blocks the event loop on its way between two styles, beside one JSON.parse of it. */
import { Dialect } from "../gen/uas/http/v1/http_pb.ts";
import type { TextDialect } from "../src/dialect/dialect.ts";
import { textDialects } from "../src/dialect/index.ts";
import { type StyleName, styles } from "./style.ts";

/** One direction. */
export interface BodyResult {
  readonly title: string;
  readonly parseMs: number;
  readonly crossMs: number;
}

const dialectOf: Readonly<Record<StyleName, Dialect>> = {
  chat: Dialect.CHAT_COMPLETIONS,
  responses: Dialect.RESPONSES,
  messages: Dialect.MESSAGES,
};

/** How often each is done; the middle counts. */
const rounds = 21;

/** The length of the body, in bytes. */
const bodyBytes = 1_000_000;

/** Measures one direction in this process. */
export function measureBody(caller: StyleName, vendor: StyleName): BodyResult {
  const content = text(bodyBytes);
  const body = Buffer.from(JSON.stringify(styles[caller].request("public", content)));
  const from = codec(caller);
  const to = codec(vendor);
  const target = {
    model: "vendor",
    stream: true,
    maxOutputTokens: 4096,
    sourceDialect: dialectOf[caller],
  };
  return {
    title: `${caller} to ${vendor}`,
    parseMs: middle(() => JSON.parse(body.toString("utf8"))),
    crossMs: middle(() => {
      const { outline } = from.readRequest(body, { alwaysStream: false, platformAliases: false });
      return to.encodeRequest(
        from.decodeRequest(body, { platformAliases: false, outline }),
        target,
      );
    }),
  };
}

function codec(style: StyleName): TextDialect {
  const dialect = textDialects.get(dialectOf[style]);
  if (dialect === undefined) throw new Error(`no dialect ${style}`);
  return dialect;
}

/** Prose with what JSON must escape now and then. */
function text(bytes: number): string {
  const line = 'She said: "Where is the café?" — and left.\n';
  return line.repeat(Math.ceil(bytes / Buffer.byteLength(line)));
}

function middle(work: () => unknown): number {
  const times = Array.from({ length: rounds }, () => {
    const began = performance.now();
    work();
    return performance.now() - began;
  }).toSorted((a, b) => a - b);
  return times[rounds >> 1] ?? 0;
}
