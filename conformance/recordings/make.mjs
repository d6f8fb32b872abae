// Records servers of other projects: our client does a small plan with each, and `mcp-conformance record` writes down what passes.
//
//   node make.mjs [NAME…] -- MCP-CONFORMANCE
//
// NAME is `PEER/RECORDING`, or the beginning of one. The servers are those of ../peers/servers/catalogue.mjs; the variables MCP_PEERS,
// MCP_PYTHON and MCP_RMCP say where they are, as for ../peers/servers.mjs. The paths in a recording are those of the machine it was made
// on, so the servers work in /tmp/recorded.
import { spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { servers } from '../peers/servers/catalogue.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const folder = '/tmp/recorded';

const small = {
  answers: { elicitation: { confirm: true, region: 'eu-west-3' } },
  steps: [
    { list: 'tools' },
    { list: 'templates' },
    { call: 'echo', arguments: { text: 'h\u00e9llo "quoted" \\' } },
    { call: 'add', arguments: { a: 2, b: 40 } },
    { call: 'no-such-tool', arguments: {} },
    { call: 'slow', arguments: { ms: 100 }, progress: true },
    { read: 'users://ada' },
    { prompt: 'greet', arguments: { tone: 'formal' } },
    { complete: { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'tone', value: 'fr' } } },
    { call: 'deploy', arguments: { env: 'staging' } },
  ],
};
const subscribed = {
  steps: [
    { listen: { resourceSubscriptions: ['config://app'] }, as: 'changes' },
    { call: 'touch' },
    { watch: 'notifications/resources/updated' },
    { unlisten: 'changes' },
    { call: 'add', arguments: { a: 1, b: 2 } },
  ],
};
const everything = {
  answers: {
    elicitation: { name: 'Ada', check: true },
    sampling: { role: 'assistant', model: 'none', stopReason: 'endTurn', content: { type: 'text', text: 'forty-two' } },
    roots: [{ uri: 'file:///srv/project', name: 'project' }],
  },
  steps: [
    { list: 'tools' },
    { call: 'echo', arguments: { message: 'h\u00e9llo' } },
    { call: 'get-structured-content', arguments: { location: 'Chicago' } },
    { call: 'no-such-tool', arguments: {} },
    { call: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 2 }, progress: true },
    { prompt: 'args-prompt', arguments: { city: 'Oslo' } },
    { call: 'trigger-sampling-request', arguments: { prompt: 'How many?', maxTokens: 10 } },
    { call: 'trigger-elicitation-request' },
  ],
};
const files = join(folder, 'files');
const filesystem = {
  answers: { roots: [{ uri: pathToFileURL(files).href, name: 'files' }] },
  steps: [
    { list: 'tools' },
    // It asks for the roots after the handshake.
    { wait: 1000 },
    { call: 'list_allowed_directories' },
    { call: 'read_text_file', arguments: { path: join(files, 'notes.txt'), head: 2 } },
    { call: 'list_directory', arguments: { path: files } },
    { call: 'read_text_file', arguments: { path: join(folder, 'elsewhere.txt') } },
  ],
};
const memory = {
  steps: [
    { list: 'tools' },
    { call: 'create_entities', arguments: { entities: [{ name: 'Ada', entityType: 'person', observations: ['writes notes'] }] } },
    { read: 'memory://knowledge-graph' },
    { call: 'add_observations', arguments: { observations: [{ entityName: 'nobody', contents: ['x'] }] } },
    { call: 'search_nodes', arguments: { query: 'notes' } },
  ],
};

/** PEER/RECORDING: the server, the transport, the era that is asked for, the plan. */
const recordings = {
  'server-everything-2026.8.31/stdio': ['everything', 'stdio', 'auto', everything],
  'server-everything-2026.8.31/http': ['everything', 'http', 'auto', everything],
  'server-filesystem-2026.8.31/stdio': ['filesystem', 'stdio', 'auto', filesystem],
  'server-memory-2026.8.31/stdio': ['memory', 'stdio', 'auto', memory],
  'typescript-server-2.4.0/http-modern': ['typescript', 'http', 'modern', small],
  'typescript-server-2.4.0/stdio-legacy': ['typescript', 'stdio', 'legacy', small],
  'typescript-server-2.4.0/http-subscription': ['typescript', 'http', 'modern', subscribed],
  'python-mcp-2.3.0/stdio-modern': ['python', 'stdio', 'modern', small],
  'python-mcp-2.3.0/http-legacy': ['python', 'http', 'legacy', small],
  'fastmcp-4.2.3/http-modern': ['fastmcp', 'http', 'modern', small],
  'rmcp-3.11.0/stdio-modern': ['rmcp', 'stdio', 'modern', small],
  'rmcp-3.11.0/http-legacy': ['rmcp', 'http', 'legacy', small],
};

const cut = process.argv.indexOf('--');
const own = process.argv[cut + 1];
const wanted = process.argv.slice(2, cut);

const running = new Set();
process.on('exit', () => running.forEach(child => child.kill()));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

function run(command, args, pipes = ['ignore', 'pipe', 'inherit']) {
  const child = spawn(command, args, { stdio: pipes });
  running.add(child);
  child.gone = new Promise(resolve => child.on('close', resolve)).finally(() => running.delete(child));
  return child;
}

function listening(child) {
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', line => {
      const url = /^listening on (\S+)$/.exec(line)?.[1];
      if (url) resolve(url);
    });
    child.gone.then(code => reject(new Error(`expected a server that listens, but it ended with ${code}`)));
  });
}

for (const [name, [server, transport, era, plan]] of Object.entries(recordings)) {
  if (wanted.length > 0 && !wanted.some(start => name.startsWith(start))) continue;
  rmSync(folder, { recursive: true, force: true });
  for (const path of [files, join(folder, 'named')]) mkdirSync(path, { recursive: true });
  writeFileSync(join(files, 'notes.txt'), 'one\ntwo\nthree\n');
  writeFileSync(join(folder, 'elsewhere.txt'), 'elsewhere\n');
  writeFileSync(join(folder, 'plan.json'), JSON.stringify(plan));
  const out = join(here, `${name}.jsonl`);
  mkdirSync(join(out, '..'), { recursive: true });
  const command = servers[server].transports[transport].command(folder);
  const record = ['record', '--without-prose', '--out', out];
  const probe = ['probe', '--runtime', 'tokio', '--era', era, '--plan', join(folder, 'plan.json')];
  const ends = [];
  if (transport === 'stdio') {
    const line = command.map(word => `'${word}'`).join(' ');
    probe.push('--', own, ...record, '--stdio', line);
  } else {
    const peer = run(command[0], command.slice(1), ['ignore', 'ignore', 'pipe']);
    const recorder = run(own, [...record, '--http', await listening(peer)], ['ignore', 'ignore', 'pipe']);
    probe.push('--url', await listening(recorder));
    ends.push(async () => {
      recorder.kill();
      await recorder.gone;
      peer.kill();
      await peer.gone;
    });
  }
  const client = run(own, probe);
  const told = [];
  createInterface({ input: client.stdout }).on('line', line => told.push(JSON.parse(line)));
  await client.gone;
  for (const end of ends) await end();
  const failed = told.filter(line => !line.ok).map(line => `${line.step}: ${line.error}`);
  console.log(`${name}: ${told.length} steps${failed.length > 0 ? `, not well: ${failed.join('; ')}` : ''}`);
}
rmSync(folder, { recursive: true, force: true });
