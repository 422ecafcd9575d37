import { randomBytes } from "node:crypto";
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { decodeMasterKey, keepMasterKey } from "../../../src/config/master-key.ts";
import { withFolder } from "./support.ts";

describe("the master key of a data folder", () => {
  it("the master key of a data folder is made once, for this user only", () => {
    withFolder((folder) => {
      const dataDir = join(folder, "data");
      const key = keepMasterKey(dataDir);
      expect(key).toHaveLength(32);
      expect(keepMasterKey(dataDir)).toEqual(key);
      expect(statSync(join(dataDir, "master.key")).mode & 0o777).toBe(0o600);
      expect(statSync(dataDir).mode & 0o777).toBe(0o700);
      expect(readdirSync(dataDir)).toEqual(["master.key"]);
    });
  });

  it("each data folder has its own master key", () => {
    const [one, two] = [withFolder(keepMasterKey), withFolder(keepMasterKey)];
    expect(one).not.toEqual(two);
  });

  it("the master key of a data folder is never replaced where it cannot be read: what it sealed would be lost", () => {
    withFolder((folder) => {
      const file = join(folder, "master.key");
      writeFileSync(file, "hunter2\n");
      expect(() => keepMasterKey(folder)).toThrow(/restore it from a backup.*UAS_MASTER_KEY/);
      expect(() => keepMasterKey(folder)).not.toThrow(/hunter2/);
      expect(readFileSync(file, "utf8")).toBe("hunter2\n");
    });
  });

  it("names a remedy if the folder cannot be written", () => {
    withFolder((folder) => {
      const file = join(folder, "file");
      writeFileSync(file, "");
      chmodSync(file, 0o600);
      expect(() => keepMasterKey(file)).toThrow(/Cannot store a master key.*UAS_MASTER_KEY/);
    });
  });

  it("the master key of a data folder is 32 bytes in base64, and nothing else", () => {
    const key = randomBytes(32);
    expect(decodeMasterKey(key.toString("base64"))).toEqual(key);
    for (const text of ["", "x", key.toString("hex"), randomBytes(33).toString("base64")]) {
      expect(decodeMasterKey(text)).toBeUndefined();
    }
  });
});
