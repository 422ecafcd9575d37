/** Citations, both ways: annotations of a text and the contract's citations. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { type Citation, CitationSchema } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import { countAt, type JsonRecord, textAt } from "../../wire/json/value.ts";

/** An annotation of a text. */
export function decodeCitation(json: string): Citation {
  const record = JSON.parse(json) as JsonRecord;
  const startIndex = countAt(record, "start_index");
  const endIndex = countAt(record, "end_index");
  return create(CitationSchema, {
    dialect: Dialect.RESPONSES,
    json,
    url: textAt(record, "url"),
    title: textAt(record, "title"),
    ...(startIndex !== undefined && { startIndex }),
    ...(endIndex !== undefined && { endIndex }),
  });
}

/**
 * Returns a citation as an annotation of a text; undefined if this style has no such form.
 *
 * @param length the text's length: a citation without a position covers all of it
 */
export function annotationJson(citation: Citation, length: number): unknown {
  if (citation.dialect === Dialect.RESPONSES && citation.json !== "") {
    return new JsonText(citation.json);
  }
  if (citation.url === "") return fileCitation(citation);
  return {
    type: "url_citation",
    url: citation.url,
    title: citation.title,
    start_index: citation.startIndex ?? 0,
    end_index: citation.endIndex ?? length,
  };
}

/**
 * A place in a document of the request, as messages cite it; `undefined` if it is something else.
 */
function fileCitation({ dialect, json, title }: Citation): unknown {
  if (dialect !== Dialect.MESSAGES) return undefined;
  const index = countAt(JSON.parse(json) as JsonRecord, "document_index");
  if (index === undefined) return undefined;
  // The document has no id: it came with the request.
  const filename = title || `document ${index}`;
  return { type: "file_citation", file_id: "", filename, index };
}
