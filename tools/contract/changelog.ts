/**
 * The text of `proto/CHANGELOG.md`: what differs from the released contract, then what former
 * releases changed.
 */
import type { Section } from "../../src/contract/describe.ts";

const introduction = `# Changes of the contract

\`npm run generate\` writes the section "Unreleased": how the contract in this folder differs from the released one,
\`baseline.binpb\`. Review it instead of generated code. Each line says what the change means for REST clients, for SDKs
and for the docs; if one of them is missing, nothing changes for it. The rules are in
[docs/contract.md](../docs/contract.md).`;

/**
 * Where the kept part of the changelog begins: at a release, or at changes that were accepted
 * before one.
 */
const keptFrom = /^(?:## \d|### Accepted)/m;

/** The kept part of a changelog: all but the introduction and the unreleased changes. */
export function keptPart(changelog: string): string {
  const at = changelog.search(keptFrom);
  return at === -1 ? "" : changelog.slice(at);
}

/** Writes a changelog with these unreleased changes above the kept part. */
export function writeChangelog(sections: readonly Section[], kept: string): string {
  const changes = sections.length === 0 ? "Nothing." : sectionsText(sections);
  return `${[introduction, "## Unreleased", changes, kept.trim()].join("\n\n").trim()}\n`;
}

/** An accepted set of changes. */
export interface Accepted {
  /** The version that is released. Undefined: changes are accepted before the next release. */
  readonly version: string | undefined;
  /** The day of the release, as `2027-01-31`. */
  readonly date: string;
  /** Why breaking changes are accepted. Undefined: there are none. */
  readonly reason: string | undefined;
}

/** Moves the unreleased changes to the released part, under a new heading. */
export function acceptChanges(
  sections: readonly Section[],
  kept: string,
  { version, date, reason }: Accepted,
): string {
  const heading =
    version === undefined ? `### Accepted before a release (${date})` : `## ${version} (${date})`;
  const override = reason === undefined ? [] : [`Breaking changes were accepted: ${reason}`];
  const changes = sections.length === 0 ? "Nothing." : sectionsText(sections);
  return [heading, ...override, changes, kept].join("\n\n");
}

function sectionsText(sections: readonly Section[]): string {
  return sections
    .map(({ heading, lines }) => `**${heading}**\n\n${lines.map((line) => `- ${line}`).join("\n")}`)
    .join("\n\n");
}

/** The versions that a changelog lists, newest first. */
export function releasesOf(changelog: string): string[] {
  return [...changelog.matchAll(/^## (\d+\.\d+\.\d+)/gm)].map(([, version = ""]) => version);
}
