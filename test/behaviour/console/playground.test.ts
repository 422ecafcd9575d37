/**
 * The playground in a real browser: tools, images, tasks, and the code that does the same
 * (R-CON-1).
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { createClient } from "@connectrpc/connect";
import type { Page, Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { renderImage } from "../../../src/provider/demo/image.ts";
import { copiedBy, pasted, wireOf } from "./clipboard.ts";
import { type ConsoleRig, startConsole } from "./console-rig.ts";
import { barriers, faultsOf, overflow, ready } from "./every-page.ts";
import { give, pick } from "./files.ts";
import { findBrowser } from "./find-browser.ts";

/** The members of a sent message that belong to tools. */
interface Message {
  readonly tool_calls?: readonly { readonly id: string }[];
  readonly tool_call_id?: string;
}

const run = promisify(execFile);
const browser = findBrowser();

describe.runIf(browser !== undefined)("the playground", () => {
  let rig: ConsoleRig;
  let page: Page;
  /** A key for programs that were copied. */
  let secret: string;
  let png: Buffer;

  beforeAll(async () => {
    rig = await startConsole(browser ?? "");
    page = await rig.signIn();
    const keys = createClient(KeyService, rig.app.transport);
    ({ secret } = await keys.createKey({ accountId: rig.accountId, name: "programs" }));
    png = await renderImage(Buffer.alloc(16, 7), { side: 64, index: 0 });
  });

  afterAll(() => rig?.close());

  const button = (name: string | RegExp) => page.getByRole("button", { name, exact: true });
  const dialog = () => page.getByRole("dialog");
  const message = () => page.getByRole("textbox", { name: "Message", exact: true });
  const open = async (model: string): Promise<void> => {
    await page.goto(`${rig.url}/console/playground?model=${encodeURIComponent(model)}`);
    await page.getByRole("heading", { name: "Playground" }).waitFor();
    await page.getByRole("combobox", { name: "Model" }).waitFor();
  };

  /** Does what sends a request, and resolves with it. */
  async function sentBy(act: () => Promise<void>, path = "/v1/chat/completions"): Promise<Request> {
    const request = page.waitForRequest((each) => new URL(each.url()).pathname === path);
    await act();
    return request;
  }

  /** Returns the text that the copy button of the code puts into the clipboard. */
  async function copied(language = "curl"): Promise<string> {
    await button(language).click();
    const block = page.getByRole("region", { name: language, exact: true }).locator("..");
    return copiedBy(page, block.getByRole("button", { name: /^(Copy|Copied)$/ }));
  }

  const wire = (curl: string) => wireOf(curl, { origin: rig.url, key: secret });

  test("a faulty tool is refused, and each fault is shown", async () => {
    await open("demo-chat");
    // By the keyboard alone.
    await button("Add tool").focus();
    await page.keyboard.press("Enter");
    const form = dialog();
    await form.getByRole("textbox", { name: "Name" }).waitFor();
    await page.keyboard.press("Enter");
    await form.getByText("Enter a name").waitFor();
    await page.keyboard.type("get weather");
    await form.getByText("A name has 1 to 64 characters").waitFor();
    const schema = form.getByRole("textbox", { name: "Parameters (JSON Schema)" });
    for (const [json, told] of [
      ["{", "This is not valid JSON: "],
      ['{"type":"string"}', 'The outermost “type” must be "object"'],
      ['{"type":"object","properties":{"a":{"type":"text"}}}', "“properties.a.type” must be one"],
      ['{"type":"object","required":["b"]}', "“required” names “b”"],
    ] as const) {
      await schema.fill(json);
      await form.getByText(told).waitFor();
    }
    expect(await barriers(page, "[role=dialog]")).toEqual([]);
    await schema.fill(
      '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}',
    );
    await form.getByRole("textbox", { name: "Name" }).fill("get_weather");
    await form.getByRole("textbox", { name: "Description" }).fill("Says how the weather is.");
    await form.getByRole("textbox", { name: "Name" }).press("Enter");
    await form.waitFor({ state: "detached" });
    await page.getByText("Says how the weather is.", { exact: true }).waitFor();
  });

  test("a tool is called, answered by the user, and the model goes on with the answer", async () => {
    await message().fill("Berlin");
    const asked = await sentBy(() => page.keyboard.press("Enter"));
    expect(asked.postDataJSON()).toMatchObject({ tools: [{ function: { name: "get_weather" } }] });
    await button("Send result").waitFor();
    const call = page.getByRole("region", { name: "Calls get_weather" });
    const args = call.getByRole("region", { name: "Arguments of get_weather" });
    expect(JSON.parse((await args.textContent()) ?? "")).toEqual({ city: "Berlin" });
    // No answer is no answer.
    await button("Send result").click();
    await page.getByText("Enter a result.").waitFor();
    expect(await barriers(page, "#content")).toEqual([]);
    const result = page.getByRole("textbox", { name: "Result of get_weather" });
    expect(await result.getAttribute("aria-invalid")).toBe("true");
    await result.fill('{"sky":"clear"}');
    const shown = await copied();
    const answered = await sentBy(() => button("Send result").click());
    const { messages } = answered.postDataJSON() as { messages: readonly Message[] };
    const id = expect.stringMatching(/^call_demo_/);
    expect(messages[1]?.tool_calls?.[0]?.id).toBe(messages[2]?.tool_call_id);
    expect(messages.slice(1)).toEqual([
      {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            id,
            type: "function",
            function: { name: "get_weather", arguments: '{"city":"Berlin"}' },
          },
        ],
      },
      { role: "tool", tool_call_id: id, content: '{"sky":"clear"}' },
    ]);
    await page.getByText('The tool answered: {"sky":"clear"}').waitFor();
    expect((await wire(shown)).body).toBe(answered.postData());
    expect(await page.evaluate("document.activeElement.placeholder")).toBe("Message");
    await message().waitFor();
  });

  test("what was copied is what was sent, byte for byte, and the key is named only", async () => {
    await message().fill(`It's "$HOME"\n你好`);
    const curl = await copied();
    const request = await sentBy(() => message().press("Enter"));
    const { body, headers } = await wire(curl);
    expect(body).toBe(request.postData());
    const sent = await request.allHeaders();
    expect([headers["authorization"], headers["content-type"]]).toEqual([
      `Bearer ${secret}`,
      sent["content-type"],
    ]);
    expect(curl).toContain("Bearer $UAS_API_KEY");
    expect(curl).not.toContain(sent["authorization"]?.slice("Bearer ".length));
    await page.getByRole("region", { name: "Calls get_weather" }).nth(1).waitFor();
    await button("Clear chat").click();
  });

  test("runs are charged and logged under a key of the playground's own", async () => {
    const { accountId, app } = rig;
    const keys = createClient(KeyService, app.transport);
    const { keys: known } = await keys.listKeys({ accountId });
    const own = known.find(({ name }) => name === "Playground");
    const log = createClient(CallService, app.transport);
    await expect
      .poll(async () => {
        const { calls } = await log.listCalls({ accountId });
        return calls.filter(({ keyId, cost }) => keyId === own?.keyId && cost?.amountNanos).length;
      })
      .toBe(3);
  });

  test("the programs that are shown run", async () => {
    await button("Remove get_weather").click();
    await message().fill("Say it's so");
    const program = (await copied("Node.js")).replace("Say it's so", "Say it again");
    const env = { ...process.env, UAS_API_KEY: secret };
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], { env });
    expect(stdout).toContain("You said: Say it again");
    await message().fill("");
  });

  test("images are picked, pasted and dropped; an unsupported file is refused with a reason", async () => {
    await pick(page, [{ name: "one.jpg", bytes: png }]);
    await give(message(), "paste", { name: "two.png", bytes: png });
    await give(message(), "drop", { name: "three.png", bytes: png });
    const list = page.getByRole("list", { name: "Images of this message" });
    await expect.poll(() => list.getByRole("listitem").count()).toBe(3);
    await pick(page, [
      { name: "note.png", bytes: Buffer.from("no picture") },
      { name: "huge.png", bytes: Buffer.concat([png, Buffer.alloc(4 * 1024 * 1024)]) },
    ]);
    const alert = page.getByRole("alert");
    await alert.getByText("note.png is not a supported image").waitFor();
    await alert.getByText("huge.png is larger than 3.5 MB").waitFor();
    await pick(
      page,
      Array.from({ length: 8 }, (_, index) => ({ name: `more${index}.png`, bytes: png })),
    );
    await alert.getByText("more7.png was not added: a message can have 10").waitFor();
    expect(await list.getByRole("listitem").count()).toBe(10);
    expect(await barriers(page, "#content")).toEqual([]);
    for (let left = 10; left > 2; left -= 1) {
      await list
        .getByRole("button", { name: /^Remove/ })
        .last()
        .click();
    }
    expect(await list.getByRole("listitem").count()).toBe(2);
    expect(await alert.count()).toBe(0);
  });

  test("images are sent as parts of the message, shown shortened and copied in full", async () => {
    await message().fill("What is this?");
    const url = `data:image/png;base64,${png.toString("base64")}`;
    const curl = await copied();
    const request = await sentBy(() => message().press("Enter"));
    const { messages } = request.postDataJSON() as { messages: { content: unknown }[] };
    expect(messages.at(-1)?.content).toEqual([
      { type: "text", text: "What is this?" },
      { type: "image_url", image_url: { url } },
      { type: "image_url", image_url: { url } },
    ]);
    await page.getByText("You sent 2 files, which it received but cannot see.").waitFor();
    expect(await page.getByRole("img", { name: /^Image \d/ }).count()).toBe(2);
    expect(curl).toContain(url);
    const shown = await page.getByRole("region", { name: "curl", exact: true }).textContent();
    expect(shown).toContain("data:image/png;base64,");
    expect(shown).not.toContain(url);
    expect((await wire(curl)).body.trimEnd()).toBe(request.postData());
    // The sent message stays visible until the next one is written.
    await button("Send").waitFor();
    expect(await copied()).toBe(curl);
    // Each word is a separate event.
    expect(await pasted(curl, secret)).toContain("files, ");
  });

  test("a reply that was cut off is marked, and failed requests can be repeated", async () => {
    await button("Clear chat").click();
    await page.getByRole("spinbutton", { name: "Max tokens" }).fill("2");
    await message().fill("Hello");
    await message().press("Enter");
    await page.getByText("reached the maximum of output tokens").waitFor();
    await page.getByRole("spinbutton", { name: "Max tokens" }).fill("");
    await page.route("**/v1/chat/completions", (route) => route.abort(), { times: 1 });
    await message().fill("More");
    await message().press("Enter");
    await page.getByRole("alert").getByRole("button", { name: "Try again" }).click();
    await page.getByText("You said: More").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  test("an image model generates an image as a task, and shows it", async () => {
    await open("demo-image");
    const shown = await page.getByRole("region", { name: "curl", exact: true }).textContent();
    const request = await sentBy(() => button("Run").click(), "/api/ai/tasks");
    const image = page.getByRole("img", { name: "Result file 1" });
    await image.waitFor();
    await expect.poll(() => image.evaluate(({ naturalWidth }) => naturalWidth)).toBeGreaterThan(0);
    expect((await wire(shown ?? "")).body).toBe(request.postData());
    await page.getByRole("link", { name: "Open task" }).click();
    await dialog().getByText("demo-image").first().waitFor();
    await page.keyboard.press("Escape");
  });

  test.for([
    { theme: "light", language: "en", add: "Add tool", send: "Send" },
    { theme: "dark", language: "zh", add: "添加工具", send: "发送" },
  ] as const)(
    "tools, images and results are accessible and fit 360 pixels: $theme, $language",
    { timeout: 120_000 },
    async ({ theme, language, add, send }) => {
      const seen = await rig.open({ theme, language });
      await seen.goto(`${rig.url}/console/playground?model=demo/instant`);
      await ready(seen);
      await seen.getByRole("button", { name: add }).click();
      const name = seen.getByRole("dialog").getByRole("textbox").first();
      await name.fill("a_tool_with_a_name_that_is_as_long_as_names_may_become_at_all_64");
      expect(await barriers(seen, "[role=dialog]")).toEqual([]);
      await seen.setViewportSize({ width: 360, height: 900 });
      expect(await overflow(seen)).toBe(0);
      await seen.setViewportSize({ width: 1280, height: 900 });
      await name.press("Enter");
      await seen.getByRole("dialog").waitFor({ state: "detached" });
      await pick(seen, [{ name: "wide.png", bytes: png }]);
      const area = seen.locator("textarea").first();
      await area.fill("W".repeat(120));
      expect(await faultsOf(seen, { theme, path: "/playground-draft" })).toEqual([]);
      await seen.getByRole("button", { name: send, exact: true }).click();
      await area.and(seen.locator(".font-mono")).waitFor();
      expect(await faultsOf(seen, { theme, path: "/playground-tool" })).toEqual([]);
      await seen.context().close();
    },
  );

  test("nothing was forbidden by the security policy, and no script failed", () => {
    expect(rig.troubles).toEqual([]);
  });
});
