// Stops with one clear line where the running Node.js cannot run this project.
// Plain JavaScript that every Node.js since 12 can parse; everything else here needs the version below.
const needed = 26;
const found = Number(process.versions.node.split(".")[0]);
if (found < needed) {
  process.stderr.write(
    `uas needs Node.js ${needed}, this is ${process.versions.node}: run \`npm ci\` first (without --omit=optional), then use \`npm start\` or \`npx uas\` (they bring their own Node.js), or install Node.js ${needed}\n`,
  );
  process.exit(1);
}
