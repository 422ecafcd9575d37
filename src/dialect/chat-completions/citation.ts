/** Citations, both ways: annotations of this style and the contract's citations. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { type Citation, CitationSchema } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import { type JsonSource, memberOf, changeMembers } from "../../wire/json/source.ts";
import { countAt, type JsonRecord, recordAt, textAt } from "../../wire/json/value.ts";

/** Reads one of a vendor's `annotations`. */
export function decodeCitation(annotation: JsonRecord, source: JsonSource): Citation {
  const cited = recordAt(annotation, "url_citation") ?? {};
  const startIndex = countAt(cited, "start_index");
  const endIndex = countAt(cited, "end_index");
  return create(CitationSchema, {
    dialect: Dialect.CHAT_COMPLETIONS,
    json: source.textOf(annotation),
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
 * Encodes a citation; `undefined` if its source is no web page, since the style has no other
 * annotations.
 *
 * @param place range of the whole text; the citation's own positions are relative to its start
 */
export function encodeCitation(citation: Citation, place: TextPlace): JsonText | undefined {
  const { dialect, json, url, title, startIndex, endIndex } = citation;
  const own = dialect === Dialect.CHAT_COMPLETIONS ? json : "";
  if (url === "") return own === "" ? undefined : new JsonText(own);
  const url_citation = changeMembers(memberOf(own, "url_citation"), {
    url: JSON.stringify(url),
    title: JSON.stringify(title),
    start_index: String(startIndex === undefined ? place.start : place.start + startIndex),
    end_index: String(endIndex === undefined ? place.end : place.start + endIndex),
  });
  return new JsonText(changeMembers(own, { type: '"url_citation"', url_citation }));
}
