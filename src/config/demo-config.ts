/**
 * The configuration of an installation without a file: a vendor inside the gateway that makes up
 * its replies.
 */

/** The name of the built-in configuration in messages. */
export const demoSource = "built-in demo";

/** The built-in configuration, as a `uas.yaml`. */
export const demoYaml = `version: 1
vendors:
  demo: { kind: demo }
sms: { provider: console }
models:
  demo-chat:
    type: TEXT
    name: Demo
    routes: [{ vendor: demo, model: chat }]
    max_output_tokens: 1024
    price: { input: "0.25", cached_input: "0.025", output: "2.00" }
  demo/instant:
    type: TEXT
    name: Demo, instant
    routes: [{ vendor: demo, model: instant }]
    max_output_tokens: 1024
    price: { input: "0.25", cached_input: "0.025", output: "2.00" }
  demo-image:
    type: IMAGE
    name: Demo, images
    routes: [{ vendor: demo, model: image }]
    price: { image: "0.003" }
  demo-audio:
    type: AUDIO
    name: Demo, audio
    routes: [{ vendor: demo, model: audio }]
    price: { second: "0.0005" }
  demo-embedding:
    type: EMBEDDING
    name: Demo, embeddings
    routes: [{ vendor: demo, model: embedding }]
    price: { input: "0.02" }
  demo-rerank:
    type: RERANK
    name: Demo, rerank
    routes: [{ vendor: demo, model: rerank }]
    price: { search: "0.001" }
  demo-moderation:
    type: MODERATION
    name: Demo, moderation
    routes: [{ vendor: demo, model: moderation }]
    price: { input: "0" }
`;

/** The demo as a document. */
export const demoDocument = { source: demoSource, content: demoYaml };
