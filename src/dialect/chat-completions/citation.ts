/** Citations, both ways: annotations of this style and the contract's citations. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { type Citation, CitationSchema } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { countAt, type JsonRecord, parseRecord, recordAt, textAt } from "../json/value.ts";

/** Reads one of a vendor's `annotations`. */
export function decodeCitation(annotation: JsonRecord): Citation {
  const cited = recordAt(annotation, "url_citation") ?? {};
  const startIndex = countAt(cited, "start_index");
  const endIndex = countAt(cited, "end_index");
  return create(CitationSchema, {
    dialect: Dialect.CHAT_COMPLETIONS,
    json: JSON.stringify(annotation),
    url: textAt(cited, "url"),
    title: textAt(cited, "title"),
    ...(startIndex !== undefined && { startIndex }),
    ...(endIndex !== undefined && { endIndex }),
  });
}

/** Range of the cited text in the whole content, in characters; the end is exclusive. */
export interface TextPlace {
  readonly start: number;
  readonly end: number;
}

/**
 * Encodes a citation; `undefined` where its source is no web page, since the style has no other annotations.
 *
 * @param place range of the whole text; the citation's own positions are relative to its start
 */
export function encodeCitation(citation: Citation, place: TextPlace): JsonRecord | undefined {
  const own =
    citation.dialect === Dialect.CHAT_COMPLETIONS ? parseRecord(citation.json) : undefined;
  if (citation.url === "") return own;
  const { startIndex, endIndex } = citation;
  const url_citation = {
    ...(own && recordAt(own, "url_citation")),
    url: citation.url,
    title: citation.title,
    start_index: startIndex === undefined ? place.start : place.start + startIndex,
    end_index: endIndex === undefined ? place.end : place.start + endIndex,
  };
  return { ...own, type: "url_citation", url_citation };
}
