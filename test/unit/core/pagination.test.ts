import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ErrorCode, GatewayError } from "../../../src/core/errors.ts";
import { cutPage, nextPageToken, readPage } from "../../../src/core/pagination.ts";

function codeOf(action: () => unknown): unknown {
  try {
    return action();
  } catch (error) {
    return error instanceof GatewayError ? error.code : error;
  }
}

test("a page size is defaulted and clamped", () => {
  expect(readPage({ pageSize: 0, pageToken: "" })).toEqual({ limit: 100, after: undefined });
  expect(readPage({ pageSize: 0, pageToken: "" }, { defaultSize: 1_000 }).limit).toBe(1_000);
  expect(readPage({ pageSize: 7, pageToken: "" }).limit).toBe(7);
  expect(readPage({ pageSize: 2 ** 31 - 1, pageToken: "" }).limit).toBe(1_000);
});

test("a token gives its sort key back, and only texts that are tokens are taken", () => {
  const key = fc.string({ minLength: 1, maxLength: 100, unit: "binary" });
  fc.assert(
    fc.property(key, (text) => {
      const pageToken = nextPageToken(text);
      expect(pageToken).toMatch(/^[\w-]+$/);
      expect(readPage({ pageSize: 1, pageToken }).after).toBe(text);
      expect(codeOf(() => readPage({ pageSize: 1, pageToken: `${pageToken}=` }))).toBe(
        ErrorCode.INVALID_REQUEST,
      );
    }),
  );
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (pageToken) => {
      expect(codeOf(() => readPage({ pageSize: 1, pageToken }))).toBe(ErrorCode.INVALID_REQUEST);
    }),
  );
});

test("a token of another list is refused where the list knows the form of its keys", () => {
  const page = { pageSize: 1, pageToken: nextPageToken("gpt-5") };
  expect(codeOf(() => readPage(page, { isKey: (text) => text.startsWith("x") }))).toBe(
    ErrorCode.INVALID_REQUEST,
  );
});

test("a page that was not read full has no next one", () => {
  const page = readPage({ pageSize: 2, pageToken: "" });
  const same = (text: string): string => text;
  expect(cutPage(page, ["a", "b"], same)).toEqual({ items: ["a", "b"], nextPageToken: "" });
  const cut = cutPage(page, ["a", "b", "c"], same);
  expect(cut.items).toEqual(["a", "b"]);
  expect(readPage({ pageSize: 2, pageToken: cut.nextPageToken }).after).toBe("b");
});
