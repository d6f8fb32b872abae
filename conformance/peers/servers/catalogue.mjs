// The servers of other projects against which our client is tried: how each is started, what it offers in which era, and
// what must come back. Each offer is a column of the table in SERVERS.md. Where a server does something else than the
// specification or a client lets expect, exactly that is what must come back, and SERVERS.md says so.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = name => fileURLToPath(new URL(name, import.meta.url));
const env = name => process.env[name] ?? assert.fail(`expected the variable ${name}, see README.md`);
const packaged = name => join(env('MCP_PEERS'), 'node_modules/@modelcontextprotocol', name, 'dist/index.js');
// The environment of a child is up to the client, so that what a server needs is set by its command.
const withPeers = (...command) => ['env', `MCP_PEERS=${env('MCP_PEERS')}`, process.execPath, ...command];

const ECHO = 'h\u00e9llo \u2713 \u{1d54f} "quoted" \\ line\nline\u2028end';
const CHANGED = 'notifications/resources/updated';

/** What a step must have told: its result, or with `refused` its error. */
const texts = ({ result }) => (result.content ?? []).filter(block => block.type === 'text').map(block => block.text).join('\n');
const text = wanted => line => assert.equal(texts(line), wanted);
const includes = (...wanted) => line => {
  for (const part of wanted) assert.ok(JSON.stringify(line.result).includes(JSON.stringify(part).slice(1, -1)), `${part} in ${JSON.stringify(line.result).slice(0, 600)}`);
};
const structured = wanted => line => assert.deepEqual(line.result.structuredContent, wanted);
const names = (member, key, ...wanted) => line => {
  const got = line.result[member].map(item => item[key]);
  assert.equal(new Set(got).size, got.length, `each once: ${got}`);
  for (const name of wanted) assert.ok(got.includes(name), `${name} in ${got}`);
};
const values = (...wanted) => line => assert.deepEqual(line.result.completion.values, wanted);
const contents = wanted => line => {
  assert.equal(line.result.contents.length, 1);
  wanted(line.result.contents[0]);
};
const progressed = (...wanted) => line => assert.deepEqual(line.progress, wanted);
const changed = uri => line => assert.equal(line.params.uri, uri);
const both = (...checks) => line => checks.forEach(check => check(line));
const any = () => {};
/** The call fails: it is given up by the client, or the server refuses. */
const refused = check => Object.assign((...seen) => check(...seen), { refused: true });
const code = wanted => refused(line => assert.equal(line.code, wanted));
const failedTool = line => assert.equal(line.result.isError, true);
/** A known difference: what the server does, in words, and how that shows. */
const differs = (words, check) => Object.assign((...seen) => check(...seen), { refused: check.refused, differs: words });
/** The server says that it has no such thing. */
const absent = check => Object.assign((...seen) => check(...seen), { refused: check.refused, absent: true });

const UNKNOWN_AS_RESULT = differs('A call of an unknown tool is answered with a result that has `isError`.', failedTool);

/**
 * The plan for the small servers. Of `subscribes`, for each era: `true`, or the check of a subscription that the server has not. `unknown`
 * checks a call of an unknown tool, `asks` that of a tool that asks where there are no sessions.
 */
const small = ({ pages = false, subscribes, task = false, unknown, asks }) => ({ era }) => {
  const modern = era !== 'legacy';
  const subscription = subscribes[era];
  return {
    answers: { elicitation: { confirm: true, region: 'eu-west-3' } },
    tasks: task && modern,
    steps: [
      ['list', { list: 'tools' }, names('tools', 'name', 'echo', 'add', 'counter', 'slow', 'touch', 'deploy')],
      ...pages ? [['pages', { list: 'tools', fresh: true }, names('tools', 'name', 'echo', 'deploy')]] : [],
      ['list', { list: 'resources' }, names('resources', 'uri', 'config://app')],
      ['list', { list: 'templates' }, names('resourceTemplates', 'uriTemplate', 'users://{id}')],
      ['list', { list: 'prompts' }, names('prompts', 'name', 'greet')],
      ['call', { call: 'echo', arguments: { text: ECHO } }, text(ECHO)],
      ['structured', { call: 'add', arguments: { a: 2, b: 40 } }, structured({ sum: 42 })],
      ['error', { call: 'no-such-tool', arguments: {} }, unknown],
      ['progress', { call: 'slow', arguments: { ms: 100 }, progress: true }, both(text('waited 100 ms'), progressed(0, 1, 2, 3, 4))],
      ['cancel', { call: 'slow', arguments: { ms: 400_000 }, progress: true, cancel: 'progress' }, refused(any)],
      ['read', { read: 'config://app' }, contents(({ text }) => assert.deepEqual(JSON.parse(text), { touched: 0 }))],
      ['read', { read: 'users://ada' }, contents(({ text }) => assert.equal(text, 'user ada'))],
      ['prompt', { prompt: 'greet', arguments: { tone: 'formal' } }, includes('Greet me in a formal tone.')],
      ['complete', { complete: { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'tone', value: 'fr' } } }, values('friendly', 'frank')],
      ['complete', { complete: { ref: { type: 'ref/resource', uri: 'users://{id}' }, argument: { name: 'id', value: 'a' } } }, values('ada', 'alan')],
      ['ask', { call: 'deploy', arguments: { env: 'staging' } }, !modern && asks || text('Deploy to staging: confirm=true, region=eu-west-3')],
      ...subscription === true ? [
        ['subscribe', { listen: { resourceSubscriptions: ['config://app'] } }, any, 'changes'],
        ['subscribe', { call: 'touch' }, text('touched 1 times')],
        ['subscribe', { watch: CHANGED }, changed('config://app')],
        ['subscribe', { read: 'config://app' }, contents(({ text }) => assert.deepEqual(JSON.parse(text), { touched: 1 }))],
        ['subscribe', { unlisten: 'changes' }, any],
      ] : subscription,
      ...task && modern ? [['task', { call: 'research', arguments: { topic: 'tea' } }, text('tea in eu-west-3')]] : [],
      ['again', { call: 'add', arguments: { a: 40, b: 2 } }, structured({ sum: 42 })],
      // The server stops in its own time.
      ['cancel', { call: 'counter', until: { '/structuredContent/stopped': 1 } }, structured({ ran: 2, stopped: 1 })],
    ],
  };
};

const stray = /: progress for \d+$/;
const everything = ({ transport }) => ({
  answers: {
    elicitation: { name: 'Ada', check: true, interpretation: 'historical' },
    url: 'accept',
    sampling: { role: 'assistant', model: 'none', stopReason: 'endTurn', content: { type: 'text', text: 'forty-two' } },
    roots: [{ uri: 'file:///srv/project', name: 'project' }],
  },
  tasks: true,
  strays: stray,
  steps: [
    ['list', { list: 'tools' }, names('tools', 'name', 'echo', 'get-sum', 'trigger-elicitation-request', 'trigger-sampling-request', 'get-roots-list')],
    ['list', { list: 'resources' }, names('resources', 'uri', 'demo://resource/static/document/features.md')],
    ['list', { list: 'templates' }, names('resourceTemplates', 'uriTemplate', 'demo://resource/dynamic/text/{resourceId}')],
    ['list', { list: 'prompts' }, names('prompts', 'name', 'simple-prompt', 'completable-prompt')],
    ['call', { call: 'echo', arguments: { message: ECHO } }, text(`Echo: ${ECHO}`)],
    ['call', { call: 'get-tiny-image' }, ({ result }) => assert.equal(result.content.find(block => block.type === 'image').mimeType, 'image/png')],
    ['call', { call: 'get-resource-links', arguments: { count: 3 } }, ({ result }) => assert.equal(result.content.filter(block => block.type === 'resource_link').length, 3)],
    ['structured', { call: 'get-structured-content', arguments: { location: 'Chicago' } }, structured({ temperature: 36, conditions: 'Light rain / drizzle', humidity: 82 })],
    ['error', { call: 'no-such-tool', arguments: {} }, UNKNOWN_AS_RESULT],
    ['progress', { call: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 4 }, progress: true }, both(includes('completed'), progressed(1, 2, 3, 4))],
    ['cancel', { call: 'trigger-long-running-operation', arguments: { duration: 3, steps: 60 }, progress: true, cancel: 'progress' },
      // Over Streamable HTTP that goes to a stream which the client has closed.
      transport === 'http' ? refused(any) : differs('A cancelled call goes on, and so does its progress.', refused((_, faults) =>
        faults && assert.ok(faults.some(fault => stray.test(fault)), `progress of the call among the faults, got ${faults}`)))],
    ['read', { read: 'demo://resource/dynamic/text/7' }, contents(({ text }) => assert.match(text, /^Resource 7: /))],
    ['read', { read: 'demo://resource/dynamic/blob/7' }, contents(({ blob }) => assert.match(`${Buffer.from(blob, 'base64')}`, /^Resource 7: /))],
    ['read', { read: 'demo://resource/static/document/features.md' }, contents(({ text }) => assert.ok(text.length > 1000))],
    ['prompt', { prompt: 'args-prompt', arguments: { city: 'Oslo' } }, includes('Oslo')],
    ['complete', { complete: { ref: { type: 'ref/prompt', name: 'completable-prompt' }, argument: { name: 'department', value: 'E' } } }, values('Engineering')],
    ['complete', { complete: { ref: { type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}' }, argument: { name: 'resourceId', value: '7' } } }, values('7')],
    // Thirteen fields of every type that a form can have, nine of them with a default.
    ['ask', { call: 'trigger-elicitation-request' }, includes('- Name: Ada', '- Agreed to terms: true')],
    ['ask', { call: 'trigger-url-elicitation', arguments: { url: 'https://example.com/consent', message: 'Please look' } }, includes('User completed the URL elicitation flow')],
    ['sample', { call: 'trigger-sampling-request', arguments: { prompt: 'How many?', maxTokens: 10 } }, includes('forty-two')],
    ['roots', { call: 'get-roots-list' }, includes('file:///srv/project')],
    ['log', { level: 'info' }, any],
    ['subscribe', { listen: { resourceSubscriptions: ['demo://resource/dynamic/text/7'] } }, any, 'changes'],
    ['log', { watch: 'notifications/message' }, ({ params }) => assert.equal(params.level, 'info')],
    ['subscribe', { call: 'toggle-subscriber-updates' }, includes('Started')],
    ['subscribe', { watch: CHANGED }, changed('demo://resource/dynamic/text/7')],
    ['subscribe', { unlisten: 'changes' }, any],
    ['subscribe', { call: 'toggle-subscriber-updates' }, includes('Stopped')],
    // Created, polled, asked something on the way, fetched.
    ['task', { call: 'simulate-research-query', arguments: { topic: 'tea', ambiguous: true }, task: true }, includes('Research Report: tea (historical)')],
    ['again', { call: 'get-sum', arguments: { a: 2, b: 40 } }, text('The sum of 2 and 40 is 42.')],
  ],
});

const filesystem = ({ folder }) => {
  const [named, root] = ['named', 'root'].map(name => join(folder, name));
  for (const name of [named, root]) mkdirSync(name, { recursive: true });
  const file = join(root, 'notes.txt');
  writeFileSync(file, 'one\ntwo\nthree\n');
  return {
    answers: { roots: [{ uri: pathToFileURL(root).href, name: 'root' }] },
    steps: [
      ['list', { list: 'tools' }, names('tools', 'name', 'read_text_file', 'write_file', 'directory_tree')],
      // It asks for the roots on its own, after the handshake, and in its own time serves these in place of its arguments.
      ['roots', { call: 'list_allowed_directories', until: { '/content/0/text': `Allowed directories:\n${root}` } }, any],
      ['call', { call: 'read_text_file', arguments: { path: file, head: 2 } }, text('one\ntwo')],
      ['structured', { call: 'list_directory', arguments: { path: root } }, structured({ content: '[FILE] notes.txt' })],
      ['call', { call: 'write_file', arguments: { path: join(root, 'new.txt'), content: ECHO } }, includes('Successfully wrote')],
      ['call', { call: 'read_text_file', arguments: { path: join(root, 'new.txt') } }, text(ECHO)],
      ['call', { call: 'edit_file', arguments: { path: file, edits: [{ oldText: 'two', newText: 'deux' }] } }, includes('+deux')],
      ['call', { call: 'search_files', arguments: { path: root, pattern: '*.txt' } }, includes('notes.txt')],
      ['error', { call: 'read_text_file', arguments: { path: join(named, 'notes.txt') } }, both(includes('Access denied'), ({ result }) => assert.equal(result.isError, true))],
      ['again', { call: 'read_multiple_files', arguments: { paths: [file] } }, includes('deux')],
    ],
  };
};

const memory = () => {
  const entity = { name: 'Ada', entityType: 'person', observations: ['writes notes'] };
  return {
    steps: [
      ['list', { list: 'tools' }, names('tools', 'name', 'create_entities', 'read_graph')],
      ['list', { list: 'resources' }, names('resources', 'uri', 'memory://knowledge-graph')],
      ['structured', { call: 'create_entities', arguments: { entities: [entity] } }, structured({ entities: [entity] })],
      ['read', { read: 'memory://knowledge-graph' }, contents(({ text }) => assert.deepEqual(JSON.parse(text), { entities: [entity], relations: [] }))],
      ['subscribe', { listen: { resourceSubscriptions: ['memory://knowledge-graph'] } }, any, 'changes'],
      ['call', { call: 'add_observations', arguments: { observations: [{ entityName: 'Ada', contents: ['likes tea'] }] } }, includes('likes tea')],
      ['subscribe', { watch: CHANGED }, changed('memory://knowledge-graph')],
      ['subscribe', { unlisten: 'changes' }, any],
      ['error', { call: 'add_observations', arguments: { observations: [{ entityName: 'nobody', contents: ['x'] }] } }, ({ result }) => assert.equal(result.isError, true)],
      ['again', { call: 'search_nodes', arguments: { query: 'tea' } }, ({ result }) => assert.equal(result.structuredContent.entities[0].name, 'Ada')],
    ],
  };
};

// The subscription is there, and empty; or there is no such method.
const NOT_GRANTED = [['subscribe', { listen: { resourceSubscriptions: ['config://app'] } }, absent(({ result }) => assert.deepEqual(result.notifications, {}))]];
const NO_METHOD = [['subscribe', { listen: { resourceSubscriptions: ['config://app'] } }, absent(code(-32601))]];
const NEVER_SERVED = [
  ['subscribe', { listen: { resourceSubscriptions: ['config://app'] } }, ({ result }) => assert.deepEqual(result.notifications, { resourceSubscriptions: ['config://app'] }), 'changes'],
  ['subscribe', { call: 'touch' }, text('touched 1 times')],
  ['subscribe', { watch: CHANGED, timeout: 200 }, differs('A subscription is acknowledged, and nothing ever comes of it.', refused(any))],
  ['subscribe', { unlisten: 'changes' }, any],
];
const BOTH = ['legacy', 'modern', 'auto'];
const LEGACY = ['legacy', 'auto'];

/**
 * Of each server: `package` with its version, `modern` if it speaks that era, `transports` with the command that serves over each and the eras
 * that it is tried in, and `plan({ era, transport, folder })`, in which `era` is the one that results (HTTP+SSE has the legacy one only) and `folder` an empty one. A plan has
 * `strays` where the client may tell of faults of the server: a pattern for them.
 */
export const servers = {
  everything: {
    package: '@modelcontextprotocol/server-everything 2026.8.31',
    transports: {
      stdio: { command: () => withPeers(here('everything.mjs'), 'stdio'), eras: LEGACY },
      http: { command: () => withPeers(here('everything.mjs'), 'streamableHttp'), eras: LEGACY },
      sse: { command: () => withPeers(here('everything.mjs'), 'sse'), eras: LEGACY },
    },
    plan: everything,
  },
  filesystem: {
    package: '@modelcontextprotocol/server-filesystem 2026.8.31',
    transports: { stdio: { command: folder => [process.execPath, packaged('server-filesystem'), join(folder, 'named')], eras: LEGACY } },
    plan: filesystem,
  },
  memory: {
    package: '@modelcontextprotocol/server-memory 2026.8.31',
    transports: { stdio: { command: folder => ['env', `MEMORY_FILE_PATH=${join(folder, 'graph.jsonl')}`, process.execPath, packaged('server-memory')], eras: LEGACY } },
    plan: memory,
  },
  typescript: {
    package: '@modelcontextprotocol/server 2.4.0',
    modern: true,
    transports: {
      stdio: { command: () => withPeers(here('typescript.mjs'), '--stdio'), eras: BOTH },
      http: { command: () => withPeers(here('typescript.mjs'), '--http'), eras: BOTH },
    },
    plan: small({ subscribes: { legacy: true, modern: true }, unknown: code(-32602) }),
  },
  stateless: {
    package: '@modelcontextprotocol/server 2.4.0, without sessions',
    modern: true,
    transports: { http: { command: () => withPeers(here('typescript.mjs'), '--stateless'), eras: BOTH } },
    plan: small({
      subscribes: { legacy: NEVER_SERVED, modern: true },
      unknown: code(-32602),
      asks: differs('A tool that asks the user ends with `isError`: nobody can be asked without a session.', failedTool),
    }),
  },
  python: {
    package: 'mcp 2.3.0',
    modern: true,
    transports: {
      stdio: { command: () => [env('MCP_PYTHON'), '-B', here('python_sdk.py'), '--stdio'], eras: BOTH },
      http: { command: () => [env('MCP_PYTHON'), '-B', here('python_sdk.py'), '--http'], eras: BOTH },
      sse: { command: () => [env('MCP_PYTHON'), '-B', here('python_sdk.py'), '--sse'], eras: LEGACY },
    },
    plan: small({ subscribes: { legacy: NOT_GRANTED, modern: true }, unknown: UNKNOWN_AS_RESULT }),
  },
  fastmcp: {
    package: 'fastmcp 4.2.3',
    modern: true,
    transports: {
      stdio: { command: () => [env('MCP_PYTHON'), '-B', here('fastmcp_server.py'), '--stdio'], eras: BOTH },
      http: { command: () => [env('MCP_PYTHON'), '-B', here('fastmcp_server.py'), '--http'], eras: BOTH },
      sse: { command: () => [env('MCP_PYTHON'), '-B', here('fastmcp_server.py'), '--sse'], eras: LEGACY },
    },
    plan: small({ pages: true, subscribes: { legacy: NOT_GRANTED, modern: NO_METHOD }, unknown: UNKNOWN_AS_RESULT }),
  },
  rmcp: {
    package: 'rmcp 3.11.0',
    modern: true,
    transports: {
      stdio: { command: () => [env('MCP_RMCP'), '--stdio'], eras: BOTH },
      http: { command: () => [env('MCP_RMCP'), '--http'], eras: BOTH },
    },
    plan: small({ pages: true, subscribes: { legacy: true, modern: true }, task: true, unknown: code(-32602) }),
  },
};

/** The columns, in order. */
export const columns = [
  'list', 'pages', 'call', 'structured', 'error', 'progress', 'cancel', 'read', 'prompt', 'complete', 'ask', 'sample', 'roots', 'log',
  'subscribe', 'task', 'again',
];
