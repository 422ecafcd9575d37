/**
 * Citations: those of this style unchanged, those of others as far as this style can represent
 * them.
 */
import { create } from "@bufbuild/protobuf";
import { type Citation, CitationSchema } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { type JsonRecord, textAt } from "../../wire/json/value.ts";

/**
 * Reads a citation of this style, which does not state the start and end of its text. @param json
 * its text
 */
export function readCitation(record: JsonRecord, json: string): Citation {
  return create(CitationSchema, {
    dialect: Dialect.MESSAGES,
    json,
    url: textAt(record, "url"),
    title: textAt(record, "title") || textAt(record, "document_title"),
  });
}

/**
 * Returns the text of a block that contains only sources, because the style attaches sources only
 * to text. Empty if no source has an address.
 */
export function sourcesText(citations: readonly Citation[]): string {
  const pages = citations.filter(({ url }) => url !== "");
  return pages.map(({ url, title }) => (title === "" ? url : `[${title}](${url})`)).join("\n");
}

/**
 * Returns a citation as JSON; undefined if the style has no form for it: it cites pages by their
 * address, and documents only of the same request.
 *
 * @param text the cited text, as far as it is known
 */
export function writeCitation(citation: Citation, text: string): string | undefined {
  const { dialect, json, url, title, startIndex, endIndex } = citation;
  if (dialect === Dialect.MESSAGES) return json;
  if (url === "") return undefined;
  const isKnown = startIndex !== undefined && endIndex !== undefined;
  return JSON.stringify({
    type: "web_search_result_location",
    url,
    title: title || null,
    cited_text: isKnown ? text.slice(startIndex, endIndex) : "",
    encrypted_index: "",
  });
}
