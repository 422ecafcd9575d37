/**
 * Reads the sources of a reply: texts that the model quoted, what searches found, and pages that
 * were read.
 */
import type { Citation } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { JsonSource } from "../../wire/json/source.ts";
import { isRecord, type JsonRecord, recordAt, recordsAt, textAt } from "../../wire/json/value.ts";
import { isRetrieved } from "./usage.ts";

/** Collects the sources of one reply, each once. They come in any chunk, and some of them again. */
export class CitationReader {
  readonly #known = new Set<string>();
  readonly #urls = new Set<string>();
  #waiting: Citation[] = [];

  /** Whether there are sources that were not taken. */
  get isWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** The sources since the last call. */
  take(): readonly Citation[] {
    const taken = this.#waiting;
    if (taken.length > 0) this.#waiting = [];
    return taken;
  }

  /** Reads a candidate of a chunk. @param source of the chunk */
  read(candidate: JsonRecord, source: JsonSource): void {
    const quoted = recordAt(candidate, "citationMetadata") ?? {};
    for (const list of ["citationSources", "citations"]) {
      for (const cited of recordsAt(quoted, list)) this.#add(source.textOf(cited), cited);
    }
    const grounding = recordAt(candidate, "groundingMetadata") ?? {};
    for (const chunk of recordsAt(grounding, "groundingChunks")) {
      const found = Object.values(chunk).find(isSource);
      if (found !== undefined) this.#add(source.textOf(chunk), found);
    }
    const fetched = recordAt(candidate, "urlContextMetadata") ?? {};
    for (const page of recordsAt(fetched, "urlMetadata").filter(isRetrieved)) {
      const uri = textAt(page, "retrievedUrl");
      // A page that is quoted too has a source already.
      if (uri !== "" && !this.#urls.has(uri)) this.#add(source.textOf(page), { uri });
    }
  }

  #add(json: string, { uri, title }: JsonRecord): void {
    if (this.#known.has(json)) return;
    this.#known.add(json);
    const url = typeof uri === "string" ? uri : "";
    this.#urls.add(url);
    this.#waiting.push({
      $typeName: "uas.inference.v1.Citation",
      dialect: Dialect.GEMINI,
      json,
      url,
      title: typeof title === "string" ? title : "",
    });
  }
}

/** Whether a value is a source found on the web, on a map or in documents. */
function isSource(value: unknown): value is JsonRecord {
  return isRecord(value) && textAt(value, "uri") !== "";
}
