// Stops with one clear line if the running Node.js cannot run this project.
// Every Node.js since 12 can parse this file; all other files here need the version below.
const needed = 24;
const found = Number(process.versions.node.split(".")[0]);
if (found < needed) {
  process.stderr.write(
    `uas needs Node.js ${needed} or later, this is ${process.versions.node}: install a newer one; in a checkout, run \`npm ci\` (without --omit=optional), then \`./uas\`, which uses the Node.js that npm installed\n`,
  );
  process.exit(1);
}
