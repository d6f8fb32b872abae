// The official conformance suite against the fixture over HTTP, or against our client.
//
//   MCP_PEERS=DIR node official.mjs WHAT -- PROGRAM ARGS…
//
// WHAT is `requirements REVISION`, `suite REVISION` or `extensions`: PROGRAM is a server that prints `listening on URL` on
// standard error. Or it is `client REVISION`: PROGRAM is a client, which each scenario starts with a URL and whose exit status
// counts. Scenarios about authorization are left out.
// Nothing may fail and nothing may be warned of; the suite's own exit status forgives warnings, so its reports are read.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const split = process.argv.indexOf("--");
if (!process.env.MCP_PEERS || split < 3) {
  console.error("usage: MCP_PEERS=DIR node official.mjs requirements REVISION | suite REVISION | extensions -- PROGRAM ARGS…");
  process.exit(2);
}
const [what, revision] = process.argv.slice(2, split);
const [program, ...args] = process.argv.slice(split + 1);
const suite = join(process.env.MCP_PEERS, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
const reports = mkdtempSync(join(tmpdir(), "mcp-official-"));

/** Scenarios of extensions are in no revision's list, and are run one by one. */
const EXTENSION = /^tasks-/;
/** What the suite itself only has a stub of, or what a server need not offer. */
const ALLOWED_TO_SKIP = /^(tasks-status-notifications|sep-2640-)/;
/** At least so many checks must succeed: a run that checks nothing is no success. */
const LEAST = { "requirements 2025-11-25": 70, "requirements 2026-07-28": 150, "suite 2025-06-18": 45, "suite 2025-03-26": 1, "extensions undefined": 20, "client 2025-06-18": 2, "client 2025-11-25": 18, "client 2026-07-28": 60 };

function run(...more) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--import", join(here, "loopback.mjs"), suite, ...more], { stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    child.stdout.on("data", (data) => (text += data));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, text }));
  });
}

function listening(server) {
  return new Promise((resolve, reject) => {
    createInterface({ input: server.stderr }).on("line", (line) => {
      const url = /listening on (\S+)/.exec(line)?.[1];
      if (url) resolve(url);
      else console.error(`server: ${line}`);
    });
    server.on("error", reject);
    server.on("exit", (code) => reject(new Error(`expected \`listening on URL\`, but the server ended with ${code}`)));
  });
}

function* checks(dir) {
  for (const entry of readdirSync(dir, { withFileTypes: true, recursive: true })) {
    if (entry.name !== "checks.json") continue;
    const scenario = entry.parentPath.slice(dir.length + 1).replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "");
    for (const check of JSON.parse(readFileSync(join(entry.parentPath, entry.name), "utf8"))) yield { scenario, ...check };
  }
}

let server;
let failed = 0;

async function asClient() {
  const { text } = await run("list", "--client", "--spec-version", revision);
  const all = [...text.matchAll(/^ +- (\S+) \[(\S+)\]$/gm)];
  // The list is cumulative: what was removed since is skipped by the suite.
  const names = all.filter(([, name, revisions]) => !name.startsWith("auth/") && revisions.split(",").includes(revision)).map(([, name]) => name);
  if (!names.length) throw new Error("expected scenarios in the suite's list, found none");
  for (const name of names) {
    const { code, text } = await run("client", "--command", [program, ...args].join(" "), "--scenario", name, "--spec-version", revision, "-o", reports, "--timeout", "60000");
    if (code === 0) continue;
    failed += 1;
    console.log(`client ${name}: the suite ended with ${code}\n${text}`);
  }
}

async function asServer() {
  server = spawn(program, args, { stdio: ["ignore", "inherit", "pipe"] });
  const url = await listening(server);
  const runs = [];
  if (what === "requirements") runs.push(["--requirements", revision]);
  else if (what === "suite") runs.push(["--suite", "all", "--spec-version", revision]);
  else {
    const { text } = await run("list", "--server");
    const names = [...text.matchAll(/[a-z0-9][a-z0-9-]+/g)].map(([name]) => name).filter((name) => EXTENSION.test(name));
    runs.push(...[...new Set(names)].map((name) => ["--scenario", name]));
    if (!runs.length) throw new Error("expected scenarios of extensions in the suite's list, found none");
  }
  for (const more of runs) {
    const { code, text } = await run("server", "--url", url, "-o", reports, "--timeout", "60000", ...more);
    if (code !== 0) {
      failed += 1;
      console.log(`${more.join(" ")}: the suite ended with ${code}\n${text}`);
    }
  }
}

try {
  await (what === "client" ? asClient() : asServer());
  const counts = {};
  const scenarios = new Set();
  for (const check of checks(reports)) {
    counts[check.status] = (counts[check.status] ?? 0) + 1;
    scenarios.add(check.scenario);
    const bad = check.status === "FAILURE" || check.status === "WARNING" || (check.status === "SKIPPED" && !ALLOWED_TO_SKIP.test(check.scenario));
    if (!bad) continue;
    if (check.status !== "SKIPPED") failed += 1;
    console.log(`${check.status} ${check.scenario} ${check.id}: ${check.errorMessage ?? check.description}`);
    if (check.details) console.log(`  ${JSON.stringify(check.details).slice(0, 1500)}`);
  }
  const least = LEAST[`${what} ${revision}`] ?? 1;
  if ((counts.SUCCESS ?? 0) < least) {
    failed += 1;
    console.log(`expected at least ${least} checks that succeed, got ${counts.SUCCESS ?? 0}`);
  }
  console.log(`${what} ${revision ?? ""}: ${scenarios.size} scenarios, ${Object.entries(counts).map(([status, n]) => `${n} ${status}`).join(", ")}`);
} finally {
  server?.removeAllListeners("exit");
  server?.kill();
  rmSync(reports, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
