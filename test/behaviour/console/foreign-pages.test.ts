/** Pages that a vendor answers with, opened in a real browser that is signed in to the console. */
import { createClient } from "@connectrpc/connect";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { type NativeVendorServer, startNativeVendor } from "../native/native-vendor.ts";
import { playReplicate } from "../native/replicate-vendor.ts";
import { type ConsoleRig, startConsole } from "./console-rig.ts";
import { findBrowser } from "./find-browser.ts";

const browser = findBrowser();

const model = `
  flux:
    type: IMAGE
    routes: [{ vendor: replicate, model: labs/flux }]
    price: { image: "0.003" }
`;

/** Does in a page what its user may do: it says that it ran, and makes an API key. */
const script = `
  document.title = "ran";
  fetch("/console/rpc/uas.key.v1.KeyService/CreateKey", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "stolen" }),
  });
`;
const html = `<!doctype html><body onload="document.title = 'ran'"><script>${script}</script>`;
const svg = `<svg xmlns="http://www.w3.org/2000/svg"><script>${script}</script></svg>`;
const xhtml = `<html xmlns="http://www.w3.org/1999/xhtml"><body><script>${script}</script></body></html>`;

const documents = [
  ["text/html", html],
  ["text/html; charset=utf-16", html],
  ["image/svg+xml", svg],
  ["application/xhtml+xml", xhtml],
  ["text/xml", xhtml],
  ["application/rss+xml", xhtml],
  ["application/json, text/html", html],
  ["text/plain", html],
  ["image/png", html],
  ["application/json", html],
  ["text/event-stream", html],
  ["nonsense", html],
  ["", html],
] as const;

/** Code that adds an element to a page, and resolves with the event that ends its loading. */
function embedded(tag: string, attributes: Readonly<Record<string, string>>): string {
  return `new Promise((resolve) => {
    const element = Object.assign(document.createElement("${tag}"), ${JSON.stringify(attributes)});
    for (const name of ["load", "error"]) element.addEventListener(name, () => resolve(name));
    document.body.append(element);
  })`;
}

describe.runIf(browser !== undefined)("a vendor's page", () => {
  let rig: ConsoleRig;
  let vendor: NativeVendorServer;
  let page: Page;
  /** Addresses that show what the vendor answers: with a key in the query, and without any key. */
  let places: readonly string[] = [];

  beforeAll(async () => {
    vendor = await startNativeVendor({ header: "authorization", scheme: "Bearer " });
    rig = await startConsole(browser ?? "", model, {
      vendors: `  replicate: { kind: replicate, base_url: "${vendor.origin}", api_key: "\${env:SECRET}", native_prefix: /replicate }\n`,
      env: { SECRET: vendor.secret },
    });
    page = await rig.signIn();
    const keys = createClient(KeyService, rig.app.transport);
    const { secret } = await keys.createKey({ accountId: rig.accountId, name: "attacker" });
    const { predictions } = playReplicate(vendor);
    const made = await fetch(`${rig.url}/replicate/v1/models/labs/flux/predictions`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({ input: { prompt: "a lighthouse" } }),
    });
    const { urls } = (await made.json()) as { urls: { stream: string } };
    for (const prediction of predictions.values()) prediction.status = "failed";
    places = [`${rig.url}/replicate/v1/models/labs/flux?api-key=${secret}`, urls.stream];
  });

  afterAll(async () => {
    await rig?.close();
    await vendor?.close();
  });

  /** Lets the vendor answer what the page asks for, and the polls of its job as before. */
  function answerWith(type: string, body: string): void {
    vendor.answer(({ method, headers }) =>
      method === "GET" && headers["accept"] !== undefined
        ? { headers: { "content-type": type }, body }
        : undefined,
    );
  }

  /** Opens an address. A download ends the navigation with an error. */
  async function open(address: string): Promise<void> {
    await page.goto(address, { waitUntil: "load" }).catch(() => undefined);
  }

  const keyRequests = () => rig.addresses.filter((address) => address.includes("CreateKey"));

  test("a vendor's page does run its script at the vendor's own address", async () => {
    answerWith("text/html", html);
    const bare = await rig.open();
    await bare.goto(`${vendor.origin}/page`);
    expect(await bare.title()).toBe("ran");
    expect(keyRequests()).toEqual([`${vendor.origin}/console/rpc/uas.key.v1.KeyService/CreateKey`]);
    await bare.context().close();
  });

  test.for(documents)(
    "a vendor's page of type %o runs no script at the gateway",
    { timeout: 60_000 },
    async ([type, body]) => {
      answerWith(type, body);
      const before = vendor.requests.length;
      for (const place of places) {
        await open(place);
        expect([place, await page.title()]).not.toEqual([place, "ran"]);
        await page.goto(`${rig.url}/console`);
        await page.getByRole("heading", { name: "Overview" }).waitFor();
        await page.evaluate(embedded("iframe", { src: place }));
      }
      expect(vendor.requests.length).toBeGreaterThanOrEqual(before + places.length);
      expect(keyRequests().filter((address) => address.startsWith(rig.url))).toEqual([]);
    },
  );

  test("a vendor's script and style sheet are not loaded by a page of the console", async () => {
    answerWith("text/javascript", script);
    const [place = ""] = places;
    await page.goto(`${rig.url}/console`);
    const loaded = await page.evaluate(embedded("script", { src: place }));
    expect([loaded, await page.title()]).toEqual(["error", "Overview · UAS Gateway"]);
    answerWith("text/css", "body { display: none }");
    const sheet = { rel: "stylesheet", href: place };
    expect(await page.evaluate(embedded("link", sheet))).toBe("error");
  });

  test("no page of a vendor made a key", async () => {
    const keys = createClient(KeyService, rig.app.transport);
    const { keys: all } = await keys.listKeys({ accountId: rig.accountId });
    expect(all.map(({ name }) => name)).toEqual(["attacker"]);
  });
});
