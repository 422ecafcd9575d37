/** The files of `deploy/` for systemd, proxies, Compose and Helm, as far as no server is needed. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { parse } from "yaml";
import { root } from "../docs/page.ts";

const deploy = join(root, "deploy");
const read = (file: string): string => readFileSync(join(deploy, file), "utf8");

const folder = mkdtempSync(join(tmpdir(), "uas-deploy-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Writes a file for a program that checks it. @returns its path */
function written(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const has = (program: string): boolean => spawnSync(program, ["--version"]).error === undefined;

/** Runs a program. @throws with its output if it finds a fault */
const run = (program: string, ...args: string[]): string =>
  execFileSync(program, args, { encoding: "utf8", stdio: "pipe" });

test.skipIf(!has("systemd-analyze"))(
  "systemd accepts the unit, and rates it as well protected",
  () => {
    const text = read("systemd/uas-gateway.service");
    const unit = written(
      "uas-gateway.service",
      text.replace(/^ExecStart=\S+/m, "ExecStart=/bin/true"),
    );
    expect(run("systemd-analyze", "verify", unit)).toBe("");
    run("systemd-analyze", "security", "--offline=true", "--threshold=20", unit);
  },
);

test.skipIf(!has("nginx") || !has("openssl"))("nginx accepts its file", () => {
  const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  const subject = ["-subj", "/CN=ai.example.com", "-nodes", "-newkey", "rsa:2048"];
  run("openssl", "req", "-x509", ...subject, "-keyout", key, "-out", certificate);
  // Other users than root may neither listen on port 443 nor write to the folders of Debian.
  const site = read("proxy/nginx.conf")
    .replace("listen 443 ssl", `listen unix:${folder}/nginx.sock ssl`)
    .replace(/\/etc\/\S+fullchain.pem/, certificate)
    .replace(/\/etc\/\S+privkey.pem/, key);
  const head = `pid ${folder}/nginx.pid; error_log stderr; events {}\n`;
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const own = `access_log off; ${paths.join(" ")}`;
  const siteFile = written("site.conf", site);
  const file = written("nginx.conf", `${head}http { ${own} include ${siteFile}; }`);
  run("nginx", "-t", "-q", "-e", "stderr", "-p", folder, "-c", file);
});

test.skipIf(!has("caddy"))("Caddy accepts its file, in its form", () => {
  const file = join(deploy, "proxy/Caddyfile");
  run("caddy", "adapt", "--config", file, "--adapter", "caddyfile");
  expect(run("caddy", "fmt", file)).toBe(read("proxy/Caddyfile"));
});

interface Compose {
  readonly services: Readonly<
    Record<string, { readonly volumes?: readonly string[]; readonly secrets?: readonly string[] }>
  >;
  readonly volumes: object;
  readonly secrets: object;
}

test("compose.yaml mounts only files, volumes and secrets that there are", () => {
  const { services, volumes, secrets } = parse(read("compose.yaml")) as Compose;
  expect(Object.keys(services)).toEqual(["gateway", "postgres", "prometheus", "grafana"]);
  for (const service of Object.values(services)) {
    expect(Object.keys(secrets)).toEqual(expect.arrayContaining([...(service.secrets ?? [])]));
    for (const volume of service.volumes ?? []) {
      const [source = ""] = volume.split(":");
      const isFile = source.startsWith("./");
      // The operator writes uas.yaml.
      const isThere = isFile ? existsSync(join(deploy, source)) : source in volumes;
      expect({ volume, isThere: isThere || source === "./uas.yaml" }).toEqual({
        volume,
        isThere: true,
      });
    }
  }
  for (const file of globSync("{prometheus,grafana/**}/*.{yml,yaml}", { cwd: deploy }))
    expect(parse(read(file)), file).toBeTypeOf("object");
});

test("systemd, Compose and Helm wait 90 s for running calls", () => {
  expect(read("systemd/uas-gateway.service")).toContain("\nTimeoutStopSec=90\n");
  expect(read("compose.yaml")).toContain("stop_grace_period: 90s");
  expect(read("helm/uas-gateway/values.yaml")).toContain("\nterminationGracePeriodSeconds: 90\n");
});

const chart = "helm/uas-gateway";
const templates = globSync(`${chart}/templates/*`, { cwd: deploy }).map((file) => ({
  file,
  text: read(file),
}));

/** Paths of values, such as `image.tag`; free-form maps and lists are one value. */
function pathsOf(values: Readonly<Record<string, unknown>>, before = ""): string[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const path = `${before}${name}`;
    const isGroup = typeof value === "object" && value !== null && !Array.isArray(value);
    const isFree = ["env", "resources", "nodeSelector", "podAnnotations"].includes(path);
    const isMap = isFree || /\.(?:labels|annotations)$/.test(path);
    if (!isGroup || isMap) return [path];
    return pathsOf(value as Record<string, unknown>, `${path}.`);
  });
}

test("the templates of the chart use exactly the values of values.yaml", () => {
  const known = pathsOf(parse(read(`${chart}/values.yaml`)) as Record<string, unknown>);
  const used = templates.flatMap(({ text }) =>
    [...text.matchAll(/\.Values\.([\w.]+)/g)].map(([, path = ""]) => path),
  );
  expect([...new Set(used)].toSorted()).toEqual(known.toSorted());
});

test("every block of the chart's templates ends, and every included one is defined", () => {
  const all = templates.map(({ text }) => text).join("\n");
  const defined = [...all.matchAll(/define "([^"]+)"/g)].map(([, name]) => name);
  for (const [, name] of all.matchAll(/include "([^"]+)"/g)) expect(defined).toContain(name);
  for (const { file, text } of templates) {
    const opened = text.match(/\{\{-? (?:if|with|range|define) /g)?.length ?? 0;
    expect({ file, ended: text.match(/\{\{-? end -?\}\}/g)?.length ?? 0 }).toEqual({
      file,
      ended: opened,
    });
  }
});

test("the chart has the version of the package", () => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    version: string;
  };
  expect(parse(read(`${chart}/Chart.yaml`))).toMatchObject({ version, appVersion: version });
});
