/** Names of members that lead to pictures and the like, found by their bytes: no string is made of them. */
import { placeOfName } from "./duplicate-member.ts";
import { equalsAscii } from "./object-scan.ts";

/** What a name may mean, as bits. */
export const Role = {
  /** Leads to parts of messages. */
  OPEN: 1,
  /** Its object is one picture, document or recording. */
  MEDIA: 2,
  /** Its string in a part is such a thing itself. */
  MEDIA_STRING: 4,
  /** Its string in a media object carries or names it. */
  PAYLOAD: 8,
  /** The same, in base64 without saying so. */
  BASE64: 16,
  /** Its string in a part can be read by its vendor only. */
  SEAL: 32,
  /** Its string says what a part is. */
  TYPE: 64,
  /** Its string in a media object is a MIME type. */
  MIME: 128,
  /** Its string in a call of the tool that makes pictures is one. */
  RESULT: 256,
} as const;

/** A name, and what it means. */
export interface NamedRole {
  readonly name: string;
  /** Bits of {@link Role}; 0: nothing. */
  readonly role: number;
}

/** No name, or one that means nothing. */
export const noRole: NamedRole = { name: "", role: 0 };

const { OPEN, MEDIA, MEDIA_STRING, PAYLOAD, BASE64, SEAL, TYPE, MIME, RESULT } = Role;

const nestedRoles: Readonly<Record<string, number>> = {
  messages: OPEN,
  system: OPEN,
  content: OPEN,
  output: OPEN,
  contents: OPEN,
  parts: OPEN,
  systemInstruction: OPEN,
  image_url: MEDIA | MEDIA_STRING,
  source: MEDIA,
  file: MEDIA,
  input_audio: MEDIA,
  video_url: MEDIA,
  inline_data: MEDIA,
  inlineData: MEDIA,
  file_data: MEDIA | MEDIA_STRING | PAYLOAD | BASE64,
  fileData: MEDIA,
  file_url: MEDIA_STRING,
  file_id: MEDIA_STRING | PAYLOAD,
  url: PAYLOAD,
  data: PAYLOAD | BASE64,
  file_uri: PAYLOAD,
  fileUri: PAYLOAD,
  encrypted_content: SEAL,
  signature: SEAL,
  thoughtSignature: SEAL,
  thought_signature: SEAL,
  type: TYPE,
  media_type: MIME,
  mimeType: MIME,
  mime_type: MIME,
  result: RESULT,
};

/** Names that most bodies have at the top level, and which mean nothing here. */
const commonNames =
  "model stream stream_options max_tokens max_completion_tokens max_output_tokens temperature top_p n stop stop_sequences tools tool_choice parallel_tool_calls response_format instructions metadata user store reasoning reasoning_effort thinking";

/** A set of names. */
export class NameTable {
  /** By their places in a {@link KeySet}: most names have a place that none of these has. */
  readonly #byPlace: readonly (readonly NamedRole[])[];
  readonly #byName: ReadonlyMap<string, NamedRole>;

  constructor(roles: Readonly<Record<string, number>>) {
    const names = Object.entries(roles).map(([name, role]) => ({ name, role }));
    this.#byName = new Map(names.map((each) => [each.name, each]));
    this.#byPlace = Array.from({ length: 256 }, (_, place) =>
      names.filter(({ name }) => placeOfName(name) === place),
    );
  }

  /** The name of that place that stands from `start` to `end` (exclusive); {@link noRole}: it is none of these. */
  find(place: number, bytes: Uint8Array, start: number, end: number): NamedRole {
    const named = this.#byPlace[place] as readonly NamedRole[];
    for (let i = 0; i < named.length; i++) {
      const each = named[i] as NamedRole;
      if (equalsAscii(bytes, start, end, each.name)) return each;
    }
    return noRole;
  }

  /** A name that was decoded. */
  named(name: string): NamedRole {
    return this.#byName.get(name) ?? noRole;
  }
}

/** Below the top level. */
export const nestedNames = new NameTable(nestedRoles);

/** At the top level. `input` leads to parts only there: elsewhere it is a tool's. */
export const topNames = new NameTable({
  ...Object.fromEntries(commonNames.split(" ").map((name) => [name, 0])),
  ...nestedRoles,
  input: OPEN,
});
