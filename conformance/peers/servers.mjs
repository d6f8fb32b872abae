// Our client against the servers of other projects: starts a server for each transport and era, lets the client do what
// catalogue.mjs lists for it, and judges every step.
//
//   node servers.mjs NAME [--transport T] [--era E] [--write] [--may-skip] -- COMMAND [ARGS…]
//
// COMMAND is `mcp-conformance probe --runtime tokio`, or anything that takes the same arguments. `--write` puts what works into
// SERVERS.md; without it what stands there must be the same. `--may-skip` is for a client that lacks something. The variables
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
  const era = asked === 'auto' ? (server.modern && transport !== 'sse' ? 'modern' : 'legacy') : asked;
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'mcp-servers-')));
  let host;
  try {
    const data = join(folder, 'data');
    mkdirSync(data);
    const { answers = {}, tasks, steps, strays } = server.plan({ era, transport, folder: data });
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

    // What our client tells of what a server may not do.
    const faults = options['may-skip'] ? undefined : said.map(line => /^mcp-conformance: the server: .*/.exec(line)?.[0]).filter(Boolean);
    const works = new Map();
    const judge = (row, what, test, { differs, absent } = {}) => {
      const state = works.get(row) ?? works.set(row, { failed: false, differs: new Set(), absent: true }).get(row);
      if (differs) state.differs.add(differs);
      if (!absent) state.absent = false;
      try {
        test();
        passed += 1;
        console.log(`ok   ${title}: ${what}`);
      } catch (error) {
        failed += 1;
        state.failed = true;
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
    for (const [index, [row, step, check, as]] of works.get('connect').failed ? [] : steps.entries()) {
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
        check(line, faults);
      }, check);
    }
    if (faults) {
      judge('faults', 'the client sees no fault of the server', () => assert.deepEqual(faults.filter(fault => !strays?.test(fault)), []));
    }
    judge('end', 'the client ends', () => {
      assert.deepEqual(noise, [], 'expected JSON lines only');
      assert.ok(end.code === 0 || end.code === 1, `expected status 0 or 1, got ${end.code ?? end.signal}`);
      assert.equal(end.code, lines.every(({ ok }) => ok) ? 0 : 1, 'status 1 if a step failed, else 0');
    });
    if ([...works.values()].some(({ failed }) => failed)) {
      for (const line of said.slice(-15)) console.log(`     client: ${line.slice(0, 600)}`);
      for (const line of host?.said.slice(-15) ?? []) console.log(`     server: ${line.slice(0, 600)}`);
    }
    return { transport, era: asked, works };
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${title}: ${error.stack}`);
    return { transport, era: asked, works: new Map() };
  } finally {
    if (host) await stop(host);
    rmSync(folder, { recursive: true, force: true });
  }
}

const word = state => !state ? '' : state.failed ? 'NO' : state.differs.size ? 'differs' : state.absent ? '–' : 'yes';

/** What SERVERS.md says of this server: a row for each cell, and one for each difference. */
function report(cells) {
  const rows = cells.map(({ transport, era, works }) => [transport, era, ...columns.map(column => word(works.get(column)))]);
  const differences = new Map();
  for (const { transport, era, works } of cells) {
    for (const [step, { differs }] of works) {
      for (const words of differs) {
        const key = JSON.stringify([step, words]);
        differences.set(key, [...differences.get(key) ?? [], `${transport} ${era}`]);
      }
    }
  }
  const known = [...differences].map(([key, where]) => {
    const [step, words] = JSON.parse(key);
    return [where.length === cells.length ? 'everywhere' : where.join(', '), step, words];
  });
  return [rows, known].map(lines => lines.map(line => `| ${[server.package, ...line].join(' | ')} |`));
}

/** Puts the rows into the tables at the place of those of the same server, or compares. */
function record(cells) {
  const order = Object.values(servers).map(({ package: title }) => title);
  const place = line => order.indexOf(line.split(' | ')[0].slice(2));
  const mine = report(cells);
  const text = readFileSync(TABLE, 'utf8');
  const heads = [['transport', 'era', ...columns], ['where', 'step', 'what it does']]
    .map(head => [`| ${['server', ...head].join(' | ')} |`, `|${'---|'.repeat(head.length + 1)}`].join('\n'));
  const parts = text.split(/^\| server \|.*\n\|[-|]+\n((?:\|.*\n)*)/m);
  assert.equal(parts.length, 5, 'expected two tables in SERVERS.md');
  for (const [at, head] of heads.entries()) {
    const old = parts[at * 2 + 1].split('\n').filter(Boolean);
    const all = [...old.filter(line => place(line) !== order.indexOf(server.package)), ...mine[at]].filter(line => place(line) >= 0);
    // Stable: the rows of one server stay in their order.
    all.sort((one, other) => place(one) - place(other));
    parts[at * 2 + 1] = `${[head, ...all].join('\n')}\n`;
  }
  const wanted = parts.join('');
  if (options.write) {
    writeFileSync(TABLE, wanted);
  } else if (wanted !== text) {
    failed += 1;
    const [had, has] = [text, wanted].map(text => new Set(text.split('\n')));
    console.log(`FAIL ${label}: expected what the run shows in SERVERS.md (servers.mjs --write)`);
    for (const line of had) if (!has.has(line)) console.log(`     file: ${line}`);
    for (const line of has) if (!had.has(line)) console.log(`     run:  ${line}`);
  }
}

const queue = Object.entries(server.transports)
  .filter(([transport]) => !options.transport || transport === options.transport)
  .flatMap(([transport, how]) => how.eras.filter(era => !options.era || era === options.era).map(era => [transport, how, era]));
const whole = !options.transport && !options.era && !options['may-skip'];
// Those that start at once end in any order.
const cells = queue.map(() => undefined);
const left = [...queue.entries()];
await Promise.all(Array.from({ length: AT_ONCE }, async () => {
  for (let next; (next = left.shift());) cells[next[0]] = await cell(...next[1]);
}));
if (whole) record(cells);
console.log(`${label}: ${passed} steps passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
