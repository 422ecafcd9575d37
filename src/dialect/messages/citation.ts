/** Citations: those of this style as they are, those of others as far as this style can tell them. */
import { create } from "@bufbuild/protobuf";
import { type Citation, CitationSchema } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { type JsonRecord, textAt } from "../../wire/json/value.ts";

/** A citation of this style. Where its text begins and ends is not told in it. @param json its text */
export function readCitation(record: JsonRecord, json: string): Citation {
  return create(CitationSchema, {
    dialect: Dialect.MESSAGES,
    json,
    url: textAt(record, "url"),
    title: textAt(record, "title") || textAt(record, "document_title"),
  });
}

/**
 * The text of a block that has nothing but sources, which the style only tells of a text. Empty if
 * none has an address.
 */
export function sourcesText(citations: readonly Citation[]): string {
  const pages = citations.filter(({ url }) => url !== "");
  return pages.map(({ url, title }) => (title === "" ? url : `[${title}](${url})`)).join("\n");
}

/**
 * A citation as JSON; `undefined` if the style has no form for it: it cites pages by their address,
 * and only the documents of its own requests.
 *
 * @param text what the citation is about, as far as it is known
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
