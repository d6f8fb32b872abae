// Our client against the servers of other projects: starts a server for each transport and era, lets the client do what
// catalogue.mjs lists for it, and judges every step.
//
//   node servers.mjs NAME [--transport T] [--era E] [--write] [--may-skip] -- COMMAND [ARGS…]
//
// COMMAND is `mcp-conformance probe --runtime tokio`, or anything that takes the same arguments. `--write` puts what works into
// SERVERS.md; without it that table must say the same. `--may-skip` is for a client that lacks something. The variables
// MCP_PEERS (the folder that holds node_modules), MCP_PYTHON and MCP_RMCP (programs) say where what is installed is.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { columns, servers } from './servers/catalogue.mjs';
import { within } from './steps.mjs';

const TABLE = new URL('SERVERS.md', import.meta.url);
const AT_ONCE = 3;
// For a client to end, and for a server to begin: some take seconds for their imports alone, and other work may hold the machine.
const PATIENCE_MS = 180_000;

const cut = process.argv.indexOf('--');
const { values: options, positionals: [name] } = parseArgs({
  args: process.argv.slice(2, cut < 0 ? undefined : cut),
  options: { transport: { type: 'string' }, era: { type: 'string' }, write: { type: 'boolean' }, 'may-skip': { type: 'boolean' } },
  allowPositionals: true,
});
const client = cut < 0 ? [] : process.argv.slice(cut + 1);
const server = servers[name];
if (!server || client.length === 0) {
  console.error(`expected one of ${Object.keys(servers).join(', ')}, then -- and the command of the client`);
  process.exit(2);
}
const runtime = client[client.indexOf('--runtime') + 1] ?? '';
const label = client.includes('--runtime') ? `${name} ${runtime}` : name;

const running = new Set();
process.on('exit', () => running.forEach(child => child.kill('SIGKILL')));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

function start([command, ...args], stdout) {
  const child = spawn(command, args, { stdio: ['ignore', stdout, 'pipe'] });
  running.add(child);
  child.said = [];
  createInterface({ input: child.stderr }).on('line', line => {
    child.said.push(line);
    child.emit('said', line);
  });
  child.gone = new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      running.delete(child);
      resolve({ code, signal });
    });
  });
  child.gone.catch(() => {});
  return child;
}

async function stop(child) {
  child.kill();
  const timer = setTimeout(() => child.kill('SIGKILL'), 5000);
  await child.gone;
  clearTimeout(timer);
}

/** Resolves to the URL of which a server says that it listens there. */
function listening(child) {
  return within(new Promise((resolve, reject) => {
    child.on('said', line => {
      const url = /^listening on (\S+)$/.exec(line)?.[1];
      if (url) resolve(url);
    });
    child.gone.then(({ code, signal }) => reject(new Error(`expected a server that listens, but it ended with ${code ?? signal}: ${child.said.join('\n')}`)), reject);
  }), 'the server to listen', PATIENCE_MS);
}

/** Runs the client once; resolves to what it printed, each line parsed. */
async function perform(args) {
  const child = start([...client, ...args], 'pipe');
  const lines = [];
  const noise = [];
  createInterface({ input: child.stdout }).on('line', line => {
    try {
      lines.push(JSON.parse(line));
    } catch {
      noise.push(line);
    }
  });
  let end;
  try {
    end = await within(child.gone, 'the client to end', PATIENCE_MS);
  } catch (error) {
    child.kill('SIGKILL');
    end = { code: error.message };
  }
  return { lines, noise, said: child.said, end };
}

let passed = 0;
let failed = 0;
let skipped = 0;

async function cell(transport, { command, eras: _ }, asked) {
  const title = `${label} ${transport} ${asked}`;
  const era = asked === 'auto' ? (server.modern ? 'modern' : 'legacy') : asked;
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'mcp-servers-')));
  let host;
  try {
    const data = join(folder, 'data');
    mkdirSync(data);
    const { answers = {}, tasks, steps } = server.plan({ era, transport, folder: data });
    const file = join(folder, 'plan.json');
    const plan = {
      steps: steps.map(([, step, , as], index) => ({ as: as ?? `${index}`, ...step })),
      answers,
      // A server that is slow to start on a busy machine is no legacy server, and not silent.
      timeout: PATIENCE_MS / 2,
      silence: PATIENCE_MS / 2,
      ...tasks && { tasks },
    };
    writeFileSync(file, JSON.stringify(plan));
    let target;
    if (transport === 'stdio') {
      target = ['--', ...command(data)];
    } else {
      host = start(command(data), 'ignore');
      target = [transport === 'sse' ? '--sse' : '--url', await listening(host)];
    }
    const { lines, noise, said, end } = await perform(['--era', asked, '--plan', file, ...target]);

    const works = new Map();
    const judge = (row, what, test) => {
      try {
        test();
        passed += 1;
        if (works.get(row) !== false) works.set(row, true);
        console.log(`ok   ${title}: ${what}`);
      } catch (error) {
        failed += 1;
        works.set(row, false);
        console.log(`FAIL ${title}: ${what}: ${error.message}`);
      }
    };
    judge('connect', 'connect', () => {
      const line = lines.find(({ step }) => step === 'connect') ?? lines[0];
      assert.ok(line?.ok, `expected a line for the connection, got ${JSON.stringify(line)}`);
      const version = line.result?.version ?? line.version;
      if (version !== undefined) assert.equal(version, era === 'modern' ? '2026-07-28' : '2025-11-25', 'the version');
    });
    // Without a connection one line says it all.
    for (const [index, [row, step, check, as]] of works.get('connect') ? steps.entries() : []) {
      const what = `${row}: ${Object.entries(step).slice(0, 1).map(([key, value]) => `${key} ${typeof value === 'object' ? '' : value}`)}`.trim();
      const line = lines.find(line => line.as === (as ?? `${index}`));
      if (line?.unsupported !== undefined && options['may-skip']) {
        skipped += 1;
        console.log(`skip ${title}: ${what}`);
        continue;
      }
      judge(row, what, () => {
        assert.ok(line, 'expected a line, got none');
        assert.equal(line.ok, !check.refused, JSON.stringify(line).slice(0, 800));
        check(line);
      });
    }
    judge('end', 'the client ends', () => {
      assert.deepEqual(noise, [], 'expected JSON lines only');
      assert.ok(end.code === 0 || end.code === 1, `expected status 0 or 1, got ${end.code ?? end.signal}`);
      assert.equal(end.code, lines.every(({ ok }) => ok) ? 0 : 1, 'status 1 if a step failed, else 0');
    });
    if ([...works.values()].includes(false)) {
      for (const line of said.slice(-15)) console.log(`     client: ${line.slice(0, 600)}`);
      for (const line of host?.said.slice(-15) ?? []) console.log(`     server: ${line.slice(0, 600)}`);
    }
    return { transport, era: asked, works };
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${title}: ${error.stack}`);
    return { transport, era: asked, works: new Map([['connect', false]]) };
  } finally {
    if (host) await stop(host);
    rmSync(folder, { recursive: true, force: true });
  }
}

const row = ({ transport, era, works }) =>
  `| ${server.package} | ${transport} | ${era} | ${columns.map(column => works.has(column) ? (works.get(column) ? 'yes' : 'NO') : '').join(' | ')} |`;

/** Puts the rows into the table at the place of those of the same cells, or compares. */
function record(cells) {
  const old = readFileSync(TABLE, 'utf8').split('\n');
  const key = line => line.split('|').slice(1, 4).map(part => part.trim()).join('|');
  const order = Object.values(servers).flatMap(({ package: title, transports }) =>
    Object.entries(transports).flatMap(([transport, { eras }]) => eras.map(era => `${title}|${transport}|${era}`)));
  const begin = old.findIndex(line => /^\| server \|/.test(line)) + 2;
  let end = begin;
  while (old[end]?.startsWith('|')) end += 1;
  const rows = new Map(old.slice(begin, end).map(line => [key(line), line]));
  if (options.write) {
    for (const line of cells.map(row)) rows.set(key(line), line);
    const head = [`| server | transport | era | ${columns.join(' | ')} |`, `|---|---|---|${columns.map(() => '---|').join('')}`];
    const table = order.filter(entry => rows.has(entry)).map(entry => rows.get(entry));
    writeFileSync(TABLE, [...old.slice(0, begin - 2), ...head, ...table, ...old.slice(end)].join('\n'));
    return;
  }
  for (const line of cells.map(row)) {
    if (rows.get(key(line)) === line) continue;
    failed += 1;
    console.log(`FAIL ${label}: the table of SERVERS.md differs (servers.mjs --write)\n     table: ${rows.get(key(line))}\n     run:   ${line}`);
  }
}

const queue = Object.entries(server.transports)
  .filter(([transport]) => !options.transport || transport === options.transport)
  .flatMap(([transport, how]) => how.eras.filter(era => !options.era || era === options.era).map(era => () => cell(transport, how, era)));
const cells = [];
await Promise.all(Array.from({ length: AT_ONCE }, async () => {
  for (let next; (next = queue.shift());) cells.push(await next());
}));
if (!options['may-skip']) record(cells);
console.log(`${label}: ${passed} steps passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
