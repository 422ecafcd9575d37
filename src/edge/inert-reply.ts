/**
 * Makes replies inert in browsers. Replies contain bytes of vendors and customers, and browsers
 * open addresses of the gateway like any page. Without these headers, a script in a reply would act
 * as the user who is signed in to the console.
 */
import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse,
} from "node:http";

/**
 * Headers of every reply outside the console. Nothing is loaded or run, even if the reply is shown
 * as a document.
 */
export const inertHeaders = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; sandbox",
} as const;

/** The type of content that browsers only store. */
const opaqueType = "application/octet-stream";

/**
 * A response of the public listener. It adds the headers when the head is written, because every
 * reply passes this point: replies of routes and RPCs, errors, and responses that Node.js itself
 * sends. Pages of the console are exempt: {@link markOwnPage}.
 */
export class InertReply<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  /** Whether the content is a page of the gateway, which sets its headers itself. */
  isOwnPage = false;

  override writeHead(
    status: number,
    reason?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
    headers?: OutgoingHttpHeaders | OutgoingHttpHeader[],
  ): this {
    const isText = typeof reason === "string";
    const given = (isText ? headers : reason) ?? {};
    if (this.isOwnPage) return super.writeHead(status, isText ? reason : undefined, given);
    if (!isText && !Array.isArray(given) && usualTypes.has(String(given["content-type"]))) {
      // Written into the headers object of the caller, who creates one for each reply: a copy costs
      // 0.7 µs more.
      given["x-content-type-options"] = inertHeaders["x-content-type-options"];
      given["content-security-policy"] = inertHeaders["content-security-policy"];
      return super.writeHead(status, given);
    }
    const sent = lowerCased(given);
    const length = sent["content-length"] ?? this.getHeader("content-length");
    const type = sent["content-type"] ?? this.getHeader("content-type");
    if (type !== undefined || hasContent(status, length)) {
      const form = contentForm(String(type ?? ""));
      if (form === "active") sent["content-type"] = opaqueType;
      const disposition = sent["content-disposition"] ?? this.getHeader("content-disposition");
      if (form !== "plain" && !isAttachment(disposition)) {
        sent["content-disposition"] = "attachment";
      }
    }
    Object.assign(sent, inertHeaders);
    return isText ? super.writeHead(status, reason, sent) : super.writeHead(status, sent);
  }
}

/** Exempts a reply, which must consist of the gateway's files. */
export function markOwnPage(response: ServerResponse): void {
  if (response instanceof InertReply) response.isOwnPage = true;
}

/** A copy, so that a name in another case does not make a second header. */
function lowerCased(headers: OutgoingHttpHeaders | OutgoingHttpHeader[]): OutgoingHttpHeaders {
  const copy: OutgoingHttpHeaders = {};
  if (!Array.isArray(headers)) {
    for (const name in headers) copy[name.toLowerCase()] = headers[name];
    return copy;
  }
  for (let i = 0; i + 1 < headers.length; i += 2) {
    copy[String(headers[i]).toLowerCase()] = headers[i + 1];
  }
  return copy;
}

/** Whether a reply without a type may have a body, whose type browsers would guess. */
function hasContent(status: number, length: OutgoingHttpHeader | undefined): boolean {
  return status >= 200 && status !== 204 && status !== 304 && String(length) !== "0";
}

function isAttachment(disposition: OutgoingHttpHeader | undefined): boolean {
  return /^attachment\s*(?:;|$)/i.test(String(disposition ?? ""));
}

/** `plain` is shown by browsers, `file` is stored, `active` is stored under another type. */
type ContentForm = "plain" | "file" | "active";

/**
 * A single media type. If there are several, browsers use the last one, which begins after a comma.
 */
const oneType = /^([\w!#$&^.+-]+\/[\w!#$&^.+-]+)\s*(?:;(?:[^,"]|"[^"]*")*)?$/;

/**
 * Documents that can contain scripts, scripts, and style sheets. Pages of one origin can load them
 * from each other.
 */
const activeType =
  /html|svg|[/+]xml|\/xsl|(?:java|ecma|live|\/j)script|\/css|^multipart\/|^message\//;

/** JSON in its forms, event streams, images, audio and video. */
const plainType =
  /^(?:application\/(?:x-)?(?:[\w.-]+\+)?(?:nd)?json(?:l|-seq)?|text\/event-stream|(?:image|audio|video)\/.+)$/;

/** The usual types of the gateway's replies: comparing is cheaper than parsing them. */
const usualTypes: ReadonlySet<string> = new Set([
  "application/json",
  "application/json; charset=utf-8",
  "text/event-stream",
  "text/event-stream; charset=utf-8",
]);

function contentForm(type: string): ContentForm {
  if (usualTypes.has(type)) return "plain";
  const essence = oneType.exec(type.trim())?.[1]?.toLowerCase();
  if (essence === undefined || activeType.test(essence)) return "active";
  return plainType.test(essence) ? "plain" : "file";
}
