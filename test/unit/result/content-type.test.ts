import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fileKind, headBytes } from "../../../src/result/content-type.ts";
import { isToken, newToken } from "../../../src/result/result-files.ts";

const bytes = (text: string): Buffer => Buffer.from(text, "latin1");
const typeOf = (head: Buffer, ...declared: (string | undefined)[]): string =>
  fileKind(head, declared).contentType;

describe("what a file is", () => {
  it.each([
    ["\x89PNG\r\n\x1a\n", "image/png", "png"],
    ["\xff\xd8\xff\xe0", "image/jpeg", "jpg"],
    ["GIF89a", "image/gif", "gif"],
    ["RIFF\0\0\0\0WEBPVP8 ", "image/webp", "webp"],
    ["RIFF\0\0\0\0WAVEfmt ", "audio/wav", "wav"],
    ["\0\0\0\x20ftypisom", "video/mp4", "mp4"],
    ["\0\0\0\x20ftypavif", "image/avif", "avif"],
    ["\0\0\0\x20ftypqt  ", "video/quicktime", "mov"],
    ["\0\0\0\x20ftypM4A ", "audio/mp4", "m4a"],
    ["\x1a\x45\xdf\xa3", "video/webm", "webm"],
    ["ID3\x04", "audio/mpeg", "mp3"],
    ["OggS", "audio/ogg", "ogg"],
    ["fLaC", "audio/flac", "flac"],
    ["%PDF-1.7", "application/pdf", "pdf"],
  ])("its first bytes count more than what is said: %j", (head, contentType, extension) => {
    for (const said of ["text/html", "image/bmp", undefined]) {
      expect(fileKind(bytes(head), [said])).toEqual({ contentType, extension });
    }
  });

  it("is decided by the declared types, best first, where the bytes are not conclusive", () => {
    expect(typeOf(bytes("\xff\xf3\x84"), undefined, "Audio/MP3; x=y")).toBe("audio/mpeg");
    expect(typeOf(bytes("\x01\x02"), "binary/x", "audio/aac")).toBe("audio/aac");
    expect(typeOf(bytes("<think> so"), "text/plain")).toBe("text/plain; charset=utf-8");
    expect(typeOf(bytes("{}"), "application/json; charset=x")).toBe("application/json");
    expect(typeOf(bytes("\0\0\0\x20ftypisom"), "audio/mp4")).toBe("audio/mp4");
  });

  it.each([
    ["what a browser would run", "<!doctype html>", "text/html"],
    ["a script", "alert(1)", "text/javascript"],
    ["a page that says to be a sound", " <html>", "audio/mpeg"],
    ["a picture without a picture's bytes", "alert(1)", "image/png"],
    ["no type at all", "x", undefined],
    ["a type that is none", "x", "image/png\r\nset-cookie: a"],
    ["nothing", "", undefined],
  ])("%s is served as bytes only", (_case, head, said) => {
    expect(fileKind(bytes(head), [said])).toEqual({
      contentType: "application/octet-stream",
      extension: "bin",
    });
  });

  it("a declared type never becomes a header unchecked", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: headBytes }), fc.string(), (head, said) => {
        const { contentType, extension } = fileKind(Buffer.from(head), [said]);
        expect(contentType).toMatch(/^[a-z]+\/[a-z0-9.+-]+(?:; charset=utf-8)?$/);
        expect(contentType).not.toMatch(/html|script|xml;|text\/xml/);
        expect(extension).toMatch(/^[a-z0-9]{2,8}$/);
      }),
    );
  });
});

it("tokens are 26 letters and digits, each as likely as the others, none twice", () => {
  const tokens = Array.from({ length: 2_000 }, newToken);
  expect(tokens.every(isToken)).toBe(true);
  expect(new Set(tokens).size).toBe(tokens.length);
  const counts = new Map<string, number>();
  for (const letter of tokens.join("")) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  expect(counts.size).toBe(62);
  // 839 of each are expected; 6 standard deviations.
  for (const count of counts.values()) expect(Math.abs(count - 839)).toBeLessThan(174);
  expect(isToken(`${tokens[0]}x`) || isToken("../../../etc/passwd0123456")).toBe(false);
});
