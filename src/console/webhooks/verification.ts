/** How receivers verify a signature: over the bytes as they came, in constant time. */
import type { CodeVersion } from "../common/snippets.ts";

/** The same in the languages that receivers are mostly written in. */
export const verification: readonly CodeVersion[] = [
  {
    id: "node",
    title: "Node.js",
    code: `import { createHmac, timingSafeEqual } from "node:crypto";

export function isGenuine(rawBody, headers, secret) {
  const expected = createHmac("sha256", secret).update(rawBody).digest();
  const given = Buffer.from(headers["x-ai-service-signature"] ?? "", "hex");
  return given.length === expected.length && timingSafeEqual(given, expected);
}`,
  },
  {
    id: "python",
    title: "Python",
    code: `import hashlib, hmac

def is_genuine(raw_body: bytes, headers, secret: str) -> bool:
    expected = hmac.new(secret.encode(), raw_body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, headers.get("X-AI-Service-Signature", ""))`,
  },
  {
    id: "go",
    title: "Go",
    code: `func isGenuine(rawBody []byte, header http.Header, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(rawBody)
	given, err := hex.DecodeString(header.Get("X-AI-Service-Signature"))
	return err == nil && hmac.Equal(given, mac.Sum(nil))
}`,
  },
  {
    id: "php",
    title: "PHP",
    code: `function is_genuine(string $rawBody, array $headers, string $secret): bool {
    $expected = hash_hmac('sha256', $rawBody, $secret);
    return hash_equals($expected, $headers['X-AI-Service-Signature'] ?? '');
}`,
  },
];
