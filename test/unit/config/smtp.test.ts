/** `smtp:` of a configuration. */
import { expect, it } from "vitest";
import { loadText, problemsOf } from "./support.ts";

const url = "smtps://uas:secret@mail.example.com:465";

/** A file with this section. */
function file(section: string): string {
  return `version: 1\nvendors: { demo: { kind: demo } }\nmodels: {}\n${section}`;
}

it("the mail server is a secret with a sender; without it no e-mail is sent", () => {
  const section = 'smtp: { url: "${env:MAIL}", from: "UAS <no-reply@example.com>" }';
  const { smtp } = loadText(file(section), { env: { MAIL: url } });
  expect(smtp).toEqual({ url, from: "UAS <no-reply@example.com>" });
  expect(loadText(file("")).smtp).toBeUndefined();
});

it.each([
  ['{ url: "smtp://u:p@mail.example.com", from: a@b.example }', "${env:NAME}"],
  ['{ url: "${env:WEB}", from: a@b.example }', "smtps://"],
  ['{ url: "${env:MAIL}", from: nobody }', "must be an e-mail address"],
  ['{ url: "${env:MAIL}" }', "add the sender"],
])("%s is refused without showing the secret", (section, fix) => {
  const env = { MAIL: url, WEB: "https://u:hunter2@mail.example.com" };
  const [problem = ""] = problemsOf(file(`smtp: ${section}`), { env });
  expect(problem).toContain(fix);
  expect(problem).not.toContain("hunter2");
});
