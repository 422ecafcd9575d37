import { type Caller, crossings, directions, type Json, type Vendor } from "./translation.ts";

const png = "iVBORw0KGgo=";
const pdf = "JVBERi0xLjQK";
const pictureUrl = `data:image/png;base64,${png}`;
const pdfUrl = `data:application/pdf;base64,${pdf}`;
const web = "https://a.test/b.png";

const userTurn: Readonly<Record<Caller, (part: Json) => Json>> = {
  chat: (part) => ({ messages: [{ role: "user", content: [part] }] }),
  responses: (part) => ({ input: [{ role: "user", content: [part] }] }),
  messages: (part) => ({ messages: [{ role: "user", content: [part] }] }),
};
const vendorTurn: Readonly<Record<Vendor, (part: Json) => Json>> = {
  ...userTurn,
  gemini: (part) => ({ contents: [{ role: "user", parts: [part] }] }),
};

interface Forms {
  readonly given: Readonly<Partial<Record<Caller, Json>>>;
  readonly sent: Readonly<Partial<Record<Vendor, Json>>>;
  readonly dropped?: Readonly<Partial<Record<Vendor, readonly string[]>>>;
}

/** Every direction of which both ends have a form. */
function all({ given, sent, dropped = {} }: Forms) {
  return directions.flatMap((way) => {
    const part = given[way.from];
    const got = sent[way.to];
    if (part === undefined || got === undefined) return [];
    const said = { given: userTurn[way.from](part), sent: vendorTurn[way.to](got) };
    return [{ ...way, ...said, dropped: dropped[way.to] ?? [] }];
  });
}

function refusals(given: Readonly<Partial<Record<Caller, Json>>>, refused: RegExp) {
  return directions.flatMap((way) => {
    const part = given[way.from];
    return part === undefined ? [] : [{ ...way, given: userTurn[way.from](part), refused }];
  });
}

const base64 = { type: "base64", media_type: "image/png", data: png };

crossings(
  "images: bytes",
  all({
    given: {
      chat: { type: "image_url", image_url: { url: pictureUrl } },
      responses: { type: "input_image", image_url: pictureUrl },
      messages: { type: "image", source: base64 },
    },
    sent: {
      chat: { type: "image_url", image_url: { url: pictureUrl } },
      responses: { type: "input_image", image_url: pictureUrl, detail: "auto" },
      messages: { type: "image", source: base64 },
      gemini: { inlineData: { mimeType: "image/png", data: png } },
    },
  }),
);

crossings(
  "images: addresses",
  all({
    given: {
      chat: { type: "image_url", image_url: { url: web } },
      responses: { type: "input_image", image_url: web },
      messages: { type: "image", source: { type: "url", url: web } },
    },
    sent: {
      chat: { type: "image_url", image_url: { url: web } },
      responses: { type: "input_image", image_url: web },
      messages: { type: "image", source: { type: "url", url: web } },
      gemini: { fileData: { fileUri: web, mimeType: "image/png" } },
    },
  }),
);

crossings(
  "images: detail",
  all({
    given: {
      chat: { type: "image_url", image_url: { url: web, detail: "high" } },
      responses: { type: "input_image", image_url: web, detail: "high" },
    },
    sent: {
      chat: { type: "image_url", image_url: { url: web, detail: "high" } },
      responses: { type: "input_image", image_url: web, detail: "high" },
      messages: { type: "image" },
      gemini: { fileData: { fileUri: web } },
    },
    dropped: { messages: ["detail"], gemini: ["detail"] },
  }),
);

const document = {
  type: "document",
  source: { type: "base64", media_type: "application/pdf", data: pdf },
};

crossings(
  "files: a PDF's bytes, the data URL split and joined",
  all({
    given: {
      chat: { type: "file", file: { filename: "a.pdf", file_data: pdfUrl } },
      responses: { type: "input_file", filename: "a.pdf", file_data: pdfUrl },
      messages: { ...document, title: "a.pdf" },
    },
    sent: {
      chat: { type: "file", file: { filename: "a.pdf", file_data: pdfUrl } },
      responses: { type: "input_file", filename: "a.pdf", file_data: pdfUrl },
      messages: { ...document, title: "a.pdf" },
    },
  }),
);

crossings(
  "files: a PDF without a name, or in bare base64",
  all({
    given: {
      chat: { type: "file", file: { file_data: pdf } },
      messages: document,
    },
    sent: {
      chat: { type: "file", file: { filename: "document.pdf", file_data: pdfUrl } },
      responses: { type: "input_file", filename: "document.pdf", file_data: pdfUrl },
      messages: document,
      gemini: { inlineData: { mimeType: "application/pdf", data: pdf } },
    },
  }),
);

crossings(
  "files: a PDF's address",
  all({
    given: {
      responses: { type: "input_file", file_url: "https://a.test/b.pdf" },
      messages: { type: "document", source: { type: "url", url: "https://a.test/b.pdf" } },
    },
    sent: {
      responses: { type: "input_file", file_url: "https://a.test/b.pdf" },
      messages: { type: "document", source: { type: "url", url: "https://a.test/b.pdf" } },
      gemini: { fileData: { fileUri: "https://a.test/b.pdf", mimeType: "application/pdf" } },
    },
  }),
);

crossings("files: an address that a vendor cannot take", [
  {
    from: "responses",
    to: "chat",
    given: userTurn.responses({ type: "input_file", file_url: "https://a.test/b.pdf" }),
    refused: /by address/,
  },
  {
    from: "messages",
    to: "chat",
    given: userTurn.messages({
      type: "document",
      source: { type: "url", url: "https://a.test/b.pdf" },
    }),
    refused: /by address/,
  },
]);

const plain = { type: "text", media_type: "text/plain", data: "words" };

crossings(
  "files: plain text",
  all({
    given: { messages: { type: "document", source: plain } },
    sent: {
      responses: { type: "input_text", text: "words" },
      gemini: { text: "words" },
    },
  }),
);

crossings("files: plain text in a data URL", [
  {
    from: "chat",
    to: "messages",
    given: userTurn.chat({
      type: "file",
      file: { filename: "a.txt", file_data: "data:text/plain;base64,d29yZHM=" },
    }),
    sent: vendorTurn.messages({ type: "document", source: plain, title: "a.txt" }),
  },
  {
    from: "messages",
    to: "chat",
    given: userTurn.messages({ type: "document", source: plain }),
    sent: { messages: [{ role: "user", content: "words" }] },
  },
  {
    from: "chat",
    to: "messages",
    with: "of a type that it does not read",
    given: userTurn.chat({
      type: "file",
      file: { filename: "a.zip", file_data: "data:application/zip;base64,UEs=" },
    }),
    refused: /application\/zip/,
  },
]);

crossings("files: ids cannot cross vendors", [
  ...refusals(
    {
      chat: { type: "file", file: { file_id: "file_1" } },
      responses: { type: "input_file", file_id: "file_1" },
      messages: { type: "document", source: { type: "file", file_id: "file_1" } },
    },
    /file/,
  ),
  ...refusals(
    {
      responses: { type: "input_image", file_id: "file_1" },
      messages: { type: "image", source: { type: "file", file_id: "file_1" } },
    },
    /file|image/,
  ),
]);

const sound = { data: "AAAA", format: "mp3" };

crossings(
  "audio",
  all({
    given: {
      chat: { type: "input_audio", input_audio: sound },
      responses: { type: "input_audio", input_audio: sound },
    },
    sent: {
      chat: { type: "input_audio", input_audio: sound },
      responses: { type: "input_audio", input_audio: sound },
      gemini: { inlineData: { data: "AAAA" } },
    },
  }),
);

crossings("audio: a style without it", [
  {
    from: "chat",
    to: "messages",
    given: userTurn.chat({ type: "input_audio", input_audio: sound }),
    refused: /^input_audio: /,
  },
  {
    from: "responses",
    to: "messages",
    given: userTurn.responses({ type: "input_audio", input_audio: sound }),
    refused: /^input_audio: /,
  },
  ...(["messages", "responses", "gemini"] as const).map((to) => ({
    from: "chat" as const,
    to,
    with: "what the model said before",
    given: {
      messages: [
        { role: "user", content: "q" },
        { role: "assistant", audio: { id: "audio_1" } },
        { role: "user", content: "q" },
      ],
    },
    refused: /audio/,
  })),
]);

/** Spellings of a type, with the usual one. */
const spellings: readonly (readonly [string, string])[] = [
  ["image/jpg", "image/jpeg"],
  ["IMAGE/JPG", "image/jpeg"],
  ["image/jpg; charset=utf-8", "image/jpeg"],
  ["image/pjpeg", "image/jpeg"],
  ["image/x-png", "image/png"],
  ["Image/PNG;name=a.png", "image/png"],
];

for (const [written, usual] of spellings) {
  const data = "AAAA";
  crossings(
    `images: the type ${written} goes under its usual name`,
    all({
      given: {
        chat: { type: "image_url", image_url: { url: `data:${written};base64,${data}` } },
        responses: { type: "input_image", image_url: `data:${written};base64,${data}` },
        messages: { type: "image", source: { type: "base64", media_type: written, data } },
      },
      sent: {
        chat: { type: "image_url", image_url: { url: `data:${usual};base64,${data}` } },
        responses: { type: "input_image", image_url: `data:${usual};base64,${data}` },
        messages: { type: "image", source: { type: "base64", media_type: usual, data } },
        gemini: { inlineData: { mimeType: usual, data } },
      },
    }),
  );
}

crossings(
  "images: a type that says nothing is that of the bytes",
  ["application/octet-stream", "image/*"].flatMap((written) =>
    all({
      given: {
        chat: { type: "image_url", image_url: { url: `data:${written};base64,${png}` } },
        responses: { type: "input_image", image_url: `data:${written};base64,${png}` },
        messages: { type: "image", source: { type: "base64", media_type: written, data: png } },
      },
      sent: {
        chat: { type: "image_url", image_url: { url: pictureUrl } },
        responses: { type: "input_image", image_url: pictureUrl, detail: "auto" },
        messages: { type: "image", source: base64 },
        gemini: { inlineData: { mimeType: "image/png", data: png } },
      },
    }).map((each) => ({ ...each, with: written })),
  ),
);

crossings(
  "files: the type of a PDF or text goes under its usual name",
  ["application/x-pdf", "Application/PDF; version=1.7", "text/pdf"].flatMap((written) =>
    all({
      given: {
        chat: {
          type: "file",
          file: { filename: "a.pdf", file_data: `data:${written};base64,${pdf}` },
        },
        responses: {
          type: "input_file",
          filename: "a.pdf",
          file_data: `data:${written};base64,${pdf}`,
        },
        messages: {
          type: "document",
          title: "a.pdf",
          source: { type: "base64", media_type: written, data: pdf },
        },
      },
      sent: {
        chat: { type: "file", file: { filename: "a.pdf", file_data: pdfUrl } },
        responses: { type: "input_file", filename: "a.pdf", file_data: pdfUrl },
        messages: { ...document, title: "a.pdf" },
      },
    }).map((each) => ({ ...each, with: written })),
  ),
);

crossings(
  "audio: the format goes under its usual name",
  (["mp3", "x-wav", "WAV", "mpeg"] as const).flatMap((format) => {
    const part = { type: "input_audio", input_audio: { data: "AAAA", format } };
    const type = /wav/i.test(format) ? "audio/wav" : "audio/mpeg";
    const usual = { data: "AAAA", format: /wav/i.test(format) ? "wav" : "mp3" };
    return all({
      given: { chat: part, responses: part },
      sent: {
        chat: { type: "input_audio", input_audio: usual },
        responses: { type: "input_audio", input_audio: usual },
        gemini: { inlineData: { mimeType: type, data: "AAAA" } },
      },
    }).map((each) => ({ ...each, with: format }));
  }),
);
