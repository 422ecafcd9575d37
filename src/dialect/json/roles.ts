/** Names of members that lead to media, matched as bytes without creating strings. */
import { placeOfName } from "./duplicate-member.ts";
import { equalsAscii } from "./object-scan.ts";

/** Meanings of a name, as bits. */
export const Role = {
  /** Contains message parts. */
  OPEN: 1,
  /** Its object is one medium. */
  MEDIA: 2,
  /** Its string within a part is a medium. */
  MEDIA_STRING: 4,
  /** Its string within a media object is the content or a reference. */
  PAYLOAD: 8,
  /** As PAYLOAD, in undeclared base64. */
  BASE64: 16,
  /** Its string within a part is readable by the vendor only. */
  SEAL: 32,
  /** Its string is the type of a part. */
  TYPE: 64,
  /** Its string in a media object is a MIME type. */
  MIME: 128,
  /** Its string within an image-generation call is an image. */
  RESULT: 256,
} as const;

/** A name and its meaning. */
export interface NamedRole {
  readonly name: string;
  /** Bits of {@link Role}; 0 for none. */
  readonly role: number;
}

/** No name, or one without a meaning. */
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

/** Common top-level names without a meaning here. */
const commonNames =
  "model stream stream_options max_tokens max_completion_tokens max_output_tokens temperature top_p n stop stop_sequences tools tool_choice parallel_tool_calls response_format instructions metadata user store reasoning reasoning_effort thinking";

/** A lookup table of names. */
export class NameTable {
  /** By bit in a {@link KeySet}; most other names have a bit without an entry. */
  readonly #byPlace: readonly (readonly NamedRole[])[];
  readonly #byName: ReadonlyMap<string, NamedRole>;

  constructor(roles: Readonly<Record<string, number>>) {
    const names = Object.entries(roles).map(([name, role]) => ({ name, role }));
    this.#byName = new Map(names.map((each) => [each.name, each]));
    this.#byPlace = Array.from({ length: 256 }, (_, place) =>
      names.filter(({ name }) => placeOfName(name) === place),
    );
  }

  /** The name from `start` to `end` (exclusive) with this bit; {@link noRole} where it is not in the table. */
  find(place: number, bytes: Uint8Array, start: number, end: number): NamedRole {
    const named = this.#byPlace[place] as readonly NamedRole[];
    for (let i = 0; i < named.length; i++) {
      const each = named[i] as NamedRole;
      if (equalsAscii(bytes, start, end, each.name)) return each;
    }
    return noRole;
  }

  /** Looks up a decoded name. */
  named(name: string): NamedRole {
    return this.#byName.get(name) ?? noRole;
  }
}

/** Names below the top level. */
export const nestedNames = new NameTable(nestedRoles);

/** Names at the top level. `input` contains parts only there; elsewhere it belongs to a tool. */
export const topNames = new NameTable({
  ...Object.fromEntries(commonNames.split(" ").map((name) => [name, 0])),
  ...nestedRoles,
  input: OPEN,
});
