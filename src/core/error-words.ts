/** The documented words of error codes, as records, REST bodies and the command line have them. */
import { ErrorCode, errorMeanings, type SentErrorCode } from "./errors.ts";

/** The documented word of a code, such as `access_denied`; empty where there was no error. */
export function errorWord(code: ErrorCode): string {
  return errorMeanings[code as SentErrorCode]?.word ?? "";
}

const byWord: ReadonlyMap<string, ErrorCode> = new Map(
  Object.entries(errorMeanings)
    .map(([code, { word }]) => [word, Number(code) as ErrorCode] as const)
    // The first of two codes with one word is the one that every status but 401 has.
    .toReversed(),
);

/**
 * The code behind a documented word; UNSPECIFIED where there is none.
 *
 * @param status the HTTP status that went with it: two codes have the word `invalid_request`. Default: not 401
 */
export function errorCodeOf(word: string, status = 0): ErrorCode {
  const code = byWord.get(word) ?? ErrorCode.UNSPECIFIED;
  const isUnknownCaller = code === ErrorCode.INVALID_REQUEST && status === 401;
  return isUnknownCaller ? ErrorCode.UNAUTHENTICATED : code;
}

/** All documented words, in the order of the contract. */
export const errorWords: readonly string[] = [
  ...new Set(Object.values(errorMeanings).map(({ word }) => word)),
];
