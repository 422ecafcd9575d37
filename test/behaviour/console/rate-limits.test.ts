/** Rate limits of a key and of an account, set in a real browser (R-CON-1, R-LIM-1). */
import { createClient } from "@connectrpc/connect";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { type ConsoleRig, startConsole } from "./console-rig.ts";
import { faultsOf } from "./every-page.ts";
import { findBrowser } from "./find-browser.ts";

const browser = findBrowser();

describe.runIf(browser !== undefined)("rate limits", () => {
  let rig: ConsoleRig;

  beforeAll(async () => {
    rig = await startConsole(browser ?? "");
    await rig.signIn();
  });

  afterAll(() => rig?.close());

  test.for([{ language: "en" }, { language: "zh" }] as const)(
    "rate limits of a new key are checked, stored and shown: $language",
    { timeout: 60_000 },
    async ({ language }) => {
      const view = await rig.open({ theme: "light", language });
      await view.goto(`${rig.url}/console/keys`);
      await view
        .getByRole("button", { name: /^(Create API key|创建 API Key)$/ })
        .first()
        .click();
      const dialog = view.getByRole("dialog");
      const name = `limited-${language}`;
      await dialog.getByRole("textbox").first().fill(name);
      const field = (label: RegExp) => dialog.getByLabel(label);
      await field(/^(Requests\/min|每分钟请求数)/).fill("0");
      await dialog.getByText(/2147483647/).waitFor();
      await field(/^(Requests\/min|每分钟请求数)/).fill("600");
      await field(/^(Calls at once|并发数)/).fill("5");
      const shot = process.env["UAS_SCREENSHOTS"];
      if (shot) await view.screenshot({ path: `${shot}/rates-${language}.png`, fullPage: true });
      expect(await faultsOf(view, { theme: "light", path: "keys-create" })).toEqual([]);
      await dialog.locator("button[type=submit]").click();
      await expect
        .poll(
          async () => {
            const keys = createClient(KeyService, rig.app.transport);
            const { keys: all } = await keys.listKeys({ accountId: rig.accountId });
            const found = all.find((key) => key.name === name)?.rateLimits;
            return found && [found.rpm, found.tpm, found.concurrency];
          },
          { timeout: 30_000 },
        )
        .toEqual([600, undefined, 5]);
    },
  );

  test.for([{ language: "en" }, { language: "zh" }] as const)(
    "an operator sets how long an account's calls wait for room, and clears it again: $language",
    { timeout: 60_000 },
    async ({ language }) => {
      const accounts = createClient(AccountService, rig.app.transport);
      const storedMs = async () => {
        const { account } = await accounts.getAccount({ accountId: rig.accountId });
        return account?.limitWait && durationMs(account.limitWait);
      };
      const view = await rig.open({ theme: "light", language, width: 360 });
      await view.goto(`${rig.url}/console/accounts/${rig.accountId}`);
      const field = view.getByLabel(/^(Longest wait for capacity, in seconds|最长排队时间（秒）)/);
      const save = view.getByRole("button", { name: /^(Save|保存)$/ });
      await field.fill("31");
      await view.getByText(/^(Enter a number from 0 to 30|请输入 0 至 30 之间的数字)/).waitFor();
      expect(await faultsOf(view, { theme: "light", path: "account-wait" })).toEqual([]);
      await field.fill("2.5");
      await save.click();
      await expect.poll(storedMs, { timeout: 20_000 }).toBe(2_500);
      await view.reload();
      await expect.poll(() => field.inputValue(), { timeout: 20_000 }).toBe("2.5");
      await field.fill("");
      await save.click();
      await expect.poll(storedMs, { timeout: 20_000 }).toBeUndefined();
    },
  );
});
